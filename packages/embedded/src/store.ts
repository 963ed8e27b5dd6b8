import { type Inbox, type Reply, type Script, type Store, StoreError } from "holdfast";
import { Connection } from "./connection.js";
import { Keyspace, serverOf } from "./keyspace.js";
import { loadedInterpreter, loadInterpreter } from "./lua/interpreter.js";
import type { ScriptReply } from "./lua/values.js";
import { ReplyError } from "./reply.js";
import type { Server } from "./server.js";

/** Options of `embedded`. */
export interface EmbeddedOptions {
  /**
   * The server. Stores with the same keyspace are clients of one server.
   *
   * @default a new server for this store alone
   */
  readonly keyspace?: Keyspace | undefined;
  /**
   * A prefix for every key, but not for channels, as in client libraries.
   *
   * @default none
   */
  readonly keyPrefix?: string | undefined;
}

/** A store on an embedded server. Tests can drop its connections. */
export interface EmbeddedStore extends Store {
  readonly kind: "embedded";
  /** The server of this store. */
  readonly keyspace: Keyspace;

  /**
   * Drops a connection, or both if called without an argument, and reconnects.
   *
   * Pending requests are rejected with a StoreError whose `mayHaveRun` is true, and requests in flight still reach the
   * server. The server ends the subscriptions immediately, and messages in flight to them are lost. Then the inboxes
   * subscribe again and the listeners of `onReconnect` are called.
   */
  dropConnection(connection?: "commands" | "inbox"): void;
}

/**
 * Creates a store in this process. It runs the same scripts as a Redis server, but needs no server.
 *
 * The store has no timeout and ignores `timeoutMs`. A reply arrives as soon as the scheduler of the keyspace delivers
 * it. If it is never delivered, the request stays pending until `dropConnection`.
 */
export function embedded(options: EmbeddedOptions = {}): EmbeddedStore {
  return new InProcessStore(options.keyspace ?? new Keyspace(), options.keyPrefix ?? "");
}

class InProcessStore implements EmbeddedStore {
  readonly kind = "embedded";
  readonly keyspace: Keyspace;
  readonly #server: Server;
  readonly #keyPrefix: string;
  readonly #commands: Connection;
  readonly #inbox: Connection;
  readonly #reconnectListeners = new Set<{ readonly call: (connection: "commands" | "inbox") => void }>();
  #isClosed = false;

  constructor(keyspace: Keyspace, keyPrefix: string) {
    this.keyspace = keyspace;
    this.#server = serverOf(keyspace);
    this.#keyPrefix = keyPrefix;
    this.#commands = new Connection(this.#server, () => this.#onReady("commands"));
    this.#inbox = new Connection(this.#server, () => this.#onReady("inbox"));
  }

  async run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const subject = script.name;
    if (loadedInterpreter() === undefined) await loadInterpreter();
    if (this.#isClosed) throw closed(subject);
    const prefixed = this.#keyPrefix === "" ? keys : keys.map((key) => this.#keyPrefix + key);
    try {
      return replyOf(await this.#send(script, prefixed, args));
    } catch (cause) {
      throw cause instanceof ReplyError
        ? new StoreError(subject, { mayHaveRun: true, transient: false, cause })
        : lost(subject, cause);
    }
  }

  async inbox(channel: string, onMessage: (message: string) => void): Promise<Inbox> {
    if (this.#isClosed) throw closed(channel);
    try {
      return await this.#inbox.listen(channel, onMessage);
    } catch (cause) {
      throw lost(channel, cause);
    }
  }

  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void {
    // The listener is wrapped in a new object, because it may be registered twice.
    const entry = { call: listener };
    this.#reconnectListeners.add(entry);
    return () => void this.#reconnectListeners.delete(entry);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#inbox.end();
  }

  dropConnection(connection?: "commands" | "inbox"): void {
    if (this.#isClosed) return;
    if (connection !== "inbox") this.#commands.drop();
    if (connection !== "commands" && this.#inbox.isListening) this.#inbox.drop();
  }

  async #send(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<ScriptReply> {
    try {
      return await this.#commands.request(() => this.#server.evalsha(script.sha1, keys, args));
    } catch (error) {
      if (!(error instanceof ReplyError && error.message.startsWith("NOSCRIPT"))) throw error;
      return this.#commands.request(() => this.#server.eval(script.source, keys, args));
    }
  }

  #onReady(connection: "commands" | "inbox"): void {
    if (this.#isClosed) return;
    for (const { call } of [...this.#reconnectListeners]) call(connection);
  }
}

/** Checks that the reply is an integer or a flat list. Anything else is a bug in the script. */
function replyOf(reply: ScriptReply): Reply {
  if (typeof reply === "number") return reply;
  if (typeof reply === "object" && reply !== null && reply.every(isScalar)) return reply;
  throw new ReplyError("ERR the script must return an integer or a flat list");
}

function isScalar(item: ScriptReply): item is string | number | null {
  return typeof item !== "object" || item === null;
}

function lost(subject: string, cause: unknown): StoreError {
  return new StoreError(subject, { mayHaveRun: true, transient: true, cause });
}

function closed(subject: string): StoreError {
  return new StoreError(subject, { mayHaveRun: false, transient: false, cause: "the store was closed" });
}
