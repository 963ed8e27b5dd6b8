/** Relays bytes between two addresses without parsing them. */

import { once } from "node:events";
import { createConnection, createServer, type Server, type Socket } from "node:net";

/** The address on which a relay listens, or to which it connects. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Starts to listen. Ends when the server is closed and the connections end. */
export async function startRelay(from: Address, to: Address): Promise<Server> {
  const server = createServer((near) => join(near, createConnection({ ...to })));
  server.listen(from.port, from.host);
  await once(server, "listening");
  return server;
}

function join(near: Socket, far: Socket): void {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.setNoDelay(true);
    one.on("error", () => {});
    one.on("close", () => other.destroy());
    one.pipe(other);
  }
}
