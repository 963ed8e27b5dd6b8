/** Which server answers for a lock, as its commands tell. */
import type { Attributes } from "@opentelemetry/api";
import type { CommandEvent } from "../../core/events.js";

/** Names come from data, and a span asks about those of late. */
const MOST = 1_000;
/** Its servers are several, and none of them is the one that has granted it. */
const ON_A_QUORUM = "redlock";

/** The server of each lock that was used last, bounded. */
export class Servers {
  readonly #byLock = new Map<string, NonNullable<CommandEvent["server"]>>();

  /** A script about a lock was answered, or not. */
  heard({ lockName, server }: CommandEvent): void {
    this.#byLock.delete(lockName);
    if (server === undefined) return;
    this.#byLock.set(lockName, server);
    if (this.#byLock.size <= MOST) return;
    // The first one of a Map is the one that was set longest ago.
    for (const [oldest] of this.#byLock) {
      this.#byLock.delete(oldest);
      return;
    }
  }

  /** `server.address` and `server.port` of that lock; none where nobody has said. */
  of(kind: string, lockName: string): Attributes {
    const server = kind === ON_A_QUORUM ? undefined : this.#byLock.get(lockName);
    if (server === undefined) return {};
    const { host, port } = server;
    return { "server.address": host, ...(port !== undefined && { "server.port": port }) };
  }
}
