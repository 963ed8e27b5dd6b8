/** Passes bytes on between an address and another, and knows nothing of them. */

import { once } from "node:events";
import { createConnection, createServer, type Server, type Socket } from "node:net";

/** Where a relay listens, or goes on to. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Begins to listen. Ends with `close` of the server and the ends of its connections. */
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
