/**
 * The interface between contestants and measurements.
 *
 * To add a contestant, add a file to this folder and a line to all.ts. It waits in the way of its library, and shares
 * the client and its settings with all other contestants on that client. Only `open` imports the library, so a
 * process that measures one contestant does not load the others.
 */

/** A lock library, or a minimal substitute for one. */
export interface Adapter {
  /** Its name on the command line and in the table. */
  readonly name: string;
  /**
   * `raw` is the minimum that any lock must do, `own` belongs to this repository, `peer` is another library, and `local` is
   * a lock within one process, which needs no server.
   */
  readonly role: "raw" | "own" | "peer" | "local";
  /** The npm package whose version is shown. Absent if there is none. */
  readonly package?: string;
  readonly client: Client;
  /** Its settings that are not defaults, and how it works where that matters here. Printed with the results. */
  readonly settings: string;
  /** Why it can be measured only with free locks. Absent if it can wait. */
  readonly onlyFree?: string;
  /** The version to show for a contestant without an npm package. */
  readonly version?: string;
  /** Whether each of its grants has a fencing token. */
  readonly hasToken?: true;
  /**
   * Set if it is in another language: the worker passes its orders on to a program in that language. `open` is then never
   * called, and only `hot`, `uncontended` and `parallel` measure it.
   */
  readonly isForeign?: true;
  /** Connects. The contestant's `close` closes the connections. */
  open(connection: Connection): Promise<Contestant>;
  /** Like `open`, for locks on a majority of the independent servers at these ports. Absent if it is not measured. */
  openQuorum?(connection: Connection, ports: readonly number[]): Promise<Contestant>;
  /** Like `open`, for locks in the cluster with nodes at these ports. Absent if it is not measured. */
  openCluster?(connection: Connection, ports: readonly number[]): Promise<Contestant>;
}

/** The client library that an adapter uses. */
export type Client = "ioredis" | "node-redis" | "glide" | "its own client" | "no client";

/** How all contestants reach the server. */
export interface Connection {
  readonly port: number;
  /** The ports of the independent servers, if a lock needs a majority of them. Then `port` is ignored. */
  readonly quorumPorts?: readonly number[];
  /** The ports of the nodes, if the locks are in a cluster. Then `port` is ignored. */
  readonly clusterPorts?: readonly number[];
  /** Whether ioredis pipelines the commands of one turn of the event loop, as the other clients always do. */
  readonly autoPipelining: boolean;
  /** Length of every lease. */
  readonly leaseMs: number;
}

/** A connected lock library in one process. */
export interface Contestant {
  /** Acquires the lock, without a time limit. */
  acquire(name: string): Promise<Held>;
  close(): Promise<void>;
}

/** A held lock. */
export interface Held {
  release(): Promise<unknown>;
}
