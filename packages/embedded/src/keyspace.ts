import { toBytes, toText } from "./bytes.js";
import { type Clock, systemClock } from "./clock.js";
import { leftMs } from "./commands/keys.js";
import type { Database, ValueType } from "./database.js";
import { loadInterpreter } from "./lua/interpreter.js";
import type { ScriptReply } from "./lua/values.js";
import { formatDouble } from "./number-text.js";
import { immediateScheduler, type Scheduler } from "./scheduler.js";
import { Server } from "./server.js";

/** The two things that an embedded server takes from outside. With both replaced, it is deterministic. */
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
   * @default in order, by turns of the event loop
   */
  readonly scheduler?: Scheduler | undefined;
}

/** A live key as `Keyspace.dump` shows it. */
export interface DumpedKey {
  readonly key: string;
  /** As TYPE answers it. */
  readonly type: ValueType;
  /**
   * A string: its text. A list: its items. A set: its members, sorted. A hash: field and value in turn, by field.
   * A sorted set: member and score in turn, in its own order. A stream: of each entry its id, then field and value in turn.
   */
  readonly value: string | readonly string[];
  /** What is left of it, in ms; -1 without expiry. */
  readonly leftMs: number;
}

let reach: (keyspace: Keyspace) => Server;

/** The way in for stores, which a user of the package does not have. */
export function serverOf(keyspace: Keyspace): Server {
  return reach(keyspace);
}

/**
 * An embedded server: keys, scripts and channels in this process.
 *
 * Every store that is given the same keyspace is a client of the same server. Nothing is kept on disk, and nothing of
 * it keeps the process alive.
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
   * Runs a script as EVAL does, at once and past the scheduler; for tests, and to look around.
   *
   * @throws Error  the server's answer was an error, such as `WRONGTYPE …`; what the script wrote before stays written
   */
  async eval(
    source: string,
    keys: readonly string[] = [],
    args: readonly (string | number)[] = [],
  ): Promise<ScriptReply> {
    await loadInterpreter();
    return this.#server.eval(source, keys, args);
  }

  /** Forgets all scripts. The next run of each answers NOSCRIPT, and its store sends it again. */
  flushScripts(): void {
    this.#server.flushScripts();
  }

  /** Forgets all keys and scripts, as a server does that restarts without a disk. Subscriptions stay. */
  clear(): void {
    this.#server.clear();
  }

  /** The live keys, in order of their bytes. */
  keys(): string[] {
    return this.#server.database().keys().map(toText);
  }

  /** What is left of `key`, in ms: -2 if there is no such key, -1 without expiry. */
  pttl(key: string): number {
    return leftMs(this.#server.database(), toBytes(key));
  }

  /** All live keys with what is in them, in order of their bytes. */
  dump(): DumpedKey[] {
    const database = this.#server.database();
    return database.keys().map((key) => {
      const type = database.type(key) as ValueType; // it was listed in this same instant
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
