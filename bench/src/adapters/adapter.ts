/**
 * What every contestant looks like to a measurement.
 *
 * A new one is one file in this folder and one line in all.ts. It brings its own waiting, as its users would
 * have it, and shares the client and its settings with all others on that client. The library itself is imported
 * by `open` only, so that a process that measures one of them has not loaded the others.
 */

/** A lock library, or the least that could stand for one. */
export interface Adapter {
  /** How it is called on the command line and in the table. */
  readonly name: string;
  /**
   * `raw` is the least that any lock can do, `own` is this repository's, `peer` is what it is compared with, and `local` is a
   * lock of one process, which needs no server.
   */
  readonly role: "raw" | "own" | "peer" | "local";
  /** The npm package whose version is shown; absent where there is none. */
  readonly package?: string;
  readonly client: Client;
  /** What it is told that is not its default, and what of its ways matters here; printed with the results. */
  readonly settings: string;
  /** Why it can only be measured where locks are free; absent if it can wait. */
  readonly onlyFree?: string;
  /** Version that is shown of a contestant without an npm package. */
  readonly version?: string;
  /** Whether each of its grants has a token that rises. */
  readonly hasToken?: true;
  /**
   * In another language, whose own program carries out the orders: the worker passes them on. Then `open` is never called, and
   * only `hot`, `uncontended` and `parallel` measure it.
   */
  readonly isForeign?: true;
  /** Connects. What it opens is closed by `close`. */
  open(connection: Connection): Promise<Contestant>;
  /** Like `open`, for a lock on a majority of the independent servers at these ports. Absent if the library has none. */
  openQuorum?(connection: Connection, ports: readonly number[]): Promise<Contestant>;
  /** Like `open`, for a lock in the cluster with nodes at these ports. Absent if it is not measured. */
  openCluster?(connection: Connection, ports: readonly number[]): Promise<Contestant>;
}

/** The client library that an adapter stands on. */
export type Client = "ioredis" | "node-redis" | "glide" | "its own client" | "no client";

/** How all contestants reach the server. */
export interface Connection {
  readonly port: number;
  /** Those of independent servers, where a lock is on a majority of them; then `port` is of no account. */
  readonly quorumPorts?: readonly number[];
  /** The ports of the nodes, if the locks are in a cluster. Then `port` is ignored. */
  readonly clusterPorts?: readonly number[];
  /** Whether ioredis sends the commands of one turn of the event loop together, as the other clients always do. */
  readonly autoPipelining: boolean;
  /** Length of every lease. */
  readonly leaseMs: number;
}

/** One connected process's way to its locks. */
export interface Contestant {
  /** Waits, as long as it takes, until the lock is held. */
  acquire(name: string): Promise<Held>;
  close(): Promise<void>;
}

/** What a contestant holds. */
export interface Held {
  release(): Promise<unknown>;
}
