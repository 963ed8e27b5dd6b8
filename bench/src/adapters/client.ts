/** The client that all contestants stand on, with the same settings, so that only what they add is compared. */
import { Redis } from "ioredis";

/**
 * An ioredis client on the loopback server at `port`.
 *
 * Commands of one turn of the event loop go out in one write (auto-pipelining): without it the time of the
 * system calls would hide what the contestants differ in.
 */
export function newClient(port: number): Redis {
  return new Redis({ host: "127.0.0.1", port, enableAutoPipelining: true });
}
