/**
 * What every contestant looks like to a measurement.
 *
 * A new one is one file in this folder and one line in all.ts. It brings its own waiting, as its users would
 * have it, and shares the client and its settings with all others.
 */

/** A lock library, or the least that could stand for one. */
export interface Adapter {
  /** How it is called on the command line and in the table. */
  readonly name: string;
  /** Version of the library; empty where there is none. */
  readonly version: string;
  /**
   * The commands that it sends itself, in lower case. Server time is counted over these: commands within a
   * script are listed by the server as well, and their time is part of the script's.
   */
  readonly commands: readonly string[];
  /** Connects. What it opens is closed by `close`. */
  open(connection: Connection): Promise<Contestant>;
}

/** How all contestants reach the server. */
export interface Connection {
  readonly port: number;
  /** Whether the client sends the commands of one turn of the event loop together, one batch at a time. */
  readonly autoPipelining: boolean;
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
