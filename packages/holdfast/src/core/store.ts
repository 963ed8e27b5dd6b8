import type { Reply, Script } from "./script.js";

/**
 * The only door to a server. A store moves script calls out and grants back; it knows no lock kind.
 *
 * A new client library is one new file that implements this interface, and one line in tests/stores.ts
 * that runs every contract on it. See docs/adr/002-store-port.md for why these members and no others.
 */
export interface Store {
  /** What the store talks through, for messages to people: "ioredis", "node-redis", "glide", "embedded". */
  readonly kind: string;

  /**
   * Runs one script atomically, with its inputs in the order of its header.
   *
   * Every call has a deadline of its own, so the promise settles in bounded time on any connection.
   *
   * @param timeoutMs  longest time to wait for the answer
   * @throws StoreError  there was no answer, or the answer was an error; `mayHaveRun` says whether the
   *                     script may have run all the same
   */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply>;

  /**
   * Listens on `channel` from the moment it resolves until `close` is called.
   *
   * After a dropped connection the store subscribes again by itself, and then calls the listeners of
   * `onReconnect`. What was published in between is lost.
   *
   * @throws UnsupportedError  this client has no way to subscribe, and never will
   * @throws StoreError        it could not subscribe now
   */
  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * As `inbox`, on the server that has the slot of the channel's hash tag, so that a script there can count who listens.
   * Present if names live on several servers, as in a cluster: then clients have an inbox in each slot in which they wait.
   */
  shardInbox?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;

  /**
   * Calls `listener` each time a connection of this store is ready again after it was lost: the one that
   * sends scripts (a client may have sent a script twice) and the one that listens (messages were missed).
   *
   * @returns stops calling it
   */
  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void;

  /** Closes what the store itself opened, never what the caller passed in. A second call does nothing. */
  close(): Promise<void>;
}

/** An open ear on one channel. */
export interface Inbox {
  /**
   * False if the servers cannot count who listens here (a cluster before Redis 7): then a waiter that is gone may be
   * granted, and the others ask more often.
   *
   * @default true
   */
  readonly isCounted?: boolean;
  /** Stops listening. A second call does nothing. Never rejects. */
  close(): Promise<void>;
}
