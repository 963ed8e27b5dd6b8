/** An embedded store that records the scripts it runs. Tests decide the fate of each call. */
import { type EmbeddedStore, embedded, type Keyspace } from "@holdfast/embedded";
import { StoreError } from "../../src/core/errors.js";
import type { Inbox, Reply, Script, Store } from "../../src/core/store.js";

/** The outcome of one call. */
export type Fate = "answered" | "reply lost" | "refused for good";

/** Wraps an embedded store. */
export class WatchedStore implements Store {
  readonly kind = "watched";
  /** Names of the scripts that were sent, in order, except those for client records and server state. */
  readonly sent: string[] = [];
  /** Replaced by tests. */
  fateOf: (script: Script) => Fate = () => "answered";
  /** Tests call these to report a reconnect. */
  readonly listeners = new Set<(connection: "commands" | "inbox") => void>();
  readonly #store: EmbeddedStore;

  constructor(keyspace: Keyspace) {
    this.#store = embedded({ keyspace });
  }

  /** Returns the scripts sent since the last call. */
  taken(): string[] {
    return this.sent.splice(0);
  }

  async run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    if (!/^(?:client-record|server)\//.test(script.name)) this.sent.push(script.name);
    const fate = this.fateOf(script);
    if (fate === "refused for good") {
      const cause = new Error("ERR bad lua script for redis cluster");
      throw new StoreError(script.name, { mayHaveRun: false, transient: false, cause });
    }
    const reply = await this.#store.run(script, keys, args, 1_000);
    if (fate === "answered") return reply;
    throw new StoreError(script.name, { mayHaveRun: true, transient: true, cause: new Error("connection lost") });
  }

  inbox(channel: string, onMessage: (message: string) => void): Promise<Inbox> {
    return this.#store.inbox(channel, onMessage, 1_000);
  }

  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void {
    this.listeners.add(listener);
    const remove = this.#store.onReconnect(listener);
    return () => {
      this.listeners.delete(listener);
      remove();
    };
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
