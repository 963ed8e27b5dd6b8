/** A TCP port whose target server can change. Tests use it to disconnect clients or a replica, or to move them. */
import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";

/** A running switchboard. */
export interface Switchboard {
  readonly port: number;
  /** Cuts all connections. New ones go to `port`, or are refused if it is undefined. */
  switchTo(port: number | undefined): void;
  close(): Promise<void>;
}

/** Listens on a free loopback port and forwards connections to `target`. */
export async function startSwitchboard(target: number): Promise<Switchboard> {
  let present: number | undefined = target;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((incoming) => {
    keep(incoming);
    if (present === undefined) {
      incoming.destroy();
      return;
    }
    const outgoing = createConnection({ port: present, host: "127.0.0.1" });
    keep(outgoing);
    incoming.pipe(outgoing);
    outgoing.pipe(incoming);
    incoming.on("close", () => outgoing.destroy());
    outgoing.on("close", () => incoming.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    switchTo(port) {
      present = port;
      cut();
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
