import { toBytes, toText } from "./bytes.js";
import { type Clock, systemClock } from "./clock.js";
import { leftMs } from "./commands/keys.js";
import type { Database, ValueType } from "./database.js";
import { loadInterpreter } from "./lua/interpreter.js";
import type { ScriptReply } from "./lua/values.js";
import { formatDouble } from "./number-text.js";
import { immediateScheduler, type Scheduler } from "./scheduler.js";
import { Server } from "./server.js";

/** The external dependencies of an embedded server. If you replace both, the server is deterministic. */
export interface KeyspaceOptions {
  /**
   * The server's wall clock.
   *
   * @default the clock of this machine
   */
  readonly clock?: Clock | undefined;
  /**
   * The network between the server and its clients.
   *
   * @default delivers in order, one batch per turn of the event loop
   */
  readonly scheduler?: Scheduler | undefined;
}

/** A key with its value, as returned by `Keyspace.dump`. */
export interface DumpedKey {
  readonly key: string;
  /** The type, as TYPE returns it. */
  readonly type: ValueType;
  /**
   * Depends on the type:
   * - string: its text
   * - list: its items
   * - set: its members, sorted
   * - hash: alternating fields and values, sorted by field
   * - sorted set: alternating members and scores, in the order of the set
   * - stream: for each entry its id, then alternating fields and values
   */
  readonly value: string | readonly string[];
  /** The time until the key expires, in ms; -1 if it does not expire. */
  readonly leftMs: number;
}

let reach: (keyspace: Keyspace) => Server;

/** Returns the server of a keyspace, for stores. Not part of the public API. */
export function serverOf(keyspace: Keyspace): Server {
  return reach(keyspace);
}

/**
 * An embedded server: keys, scripts and channels in this process.
 *
 * All stores with the same keyspace are clients of the same server. It stores nothing on disk and does not keep the
 * process alive.
 */
export class Keyspace {
  readonly #server: Server;

  static {
    reach = (keyspace) => keyspace.#server;
  }

  constructor(options: KeyspaceOptions = {}) {
    this.#server = new Server(options.clock ?? systemClock(), options.scheduler ?? immediateScheduler());
  }

  /**
   * Runs a script like EVAL, without the scheduler. For tests and debugging.
   *
   * @param keys  the KEYS of the script
   * @param args  the ARGV of the script
   * @throws Error  the server returned an error, such as `WRONGTYPE …`; earlier writes of the script remain in effect
   */
  async eval(
    source: string,
    keys: readonly string[] = [],
    args: readonly (string | number)[] = [],
  ): Promise<ScriptReply> {
    await loadInterpreter();
    return this.#server.eval(source, keys, args);
  }

  /**
   * Deletes all scripts, like SCRIPT FLUSH. The next EVALSHA fails with NOSCRIPT, and the store then sends the source.
   */
  flushScripts(): void {
    this.#server.flushScripts();
  }

  /** Deletes all keys and scripts, like a restart of a server without persistence. Subscriptions remain. */
  clear(): void {
    this.#server.clear();
  }

  /** Returns all keys, sorted by their bytes. */
  keys(): string[] {
    return this.#server.database().keys().map(toText);
  }

  /** Returns the time until `key` expires, in ms; -2 if there is no such key, -1 if it does not expire. */
  pttl(key: string): number {
    return leftMs(this.#server.database(), toBytes(key));
  }

  /** Returns all keys with their values, sorted by the bytes of the keys. */
  dump(): DumpedKey[] {
    const database = this.#server.database();
    return database.keys().map((key) => {
      const type = database.type(key) as ValueType; // the key still exists, because the clock is frozen
      const value = contentOf(database, key, type);
      return {
        key: toText(key),
        type,
        value: typeof value === "string" ? toText(value) : value.map(toText),
        leftMs: leftMs(database, key),
      };
    });
  }
}

function contentOf(database: Database, key: string, type: ValueType): string | readonly string[] {
  switch (type) {
    case "string":
      return database.get(key, "string") ?? "";
    case "list":
      return database.get(key, "list") ?? [];
    case "set":
      return [...(database.get(key, "set") ?? [])].sort();
    case "hash":
      return [...(database.get(key, "hash") ?? [])].sort(([left], [right]) => (left < right ? -1 : 1)).flat();
    case "zset":
      return (database.get(key, "zset")?.ordered ?? []).flatMap(({ member, score }) => [member, formatDouble(score)]);
    case "stream":
      return (database.get(key, "stream")?.backwards([0, 0], [Infinity, 0]) ?? [])
        .toReversed()
        .flatMap(({ id: [ms, sequence], fields }) => [`${ms}-${sequence}`, ...fields]);
  }
}
