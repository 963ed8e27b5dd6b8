/** The client that all contestants stand on, with the same settings, so that only what they add is compared. */
import { Redis } from "ioredis";
import type { Connection } from "./adapter.js";

/** An ioredis client on the loopback server; its only setting that is not the library's default is shown in the heading. */
export function newClient({ port, autoPipelining }: Connection): Redis {
  return new Redis({ host: "127.0.0.1", port, enableAutoPipelining: autoPipelining });
}
