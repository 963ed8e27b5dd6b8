/** One row of the matrix as a fault. */

import type { Place, Stage, Work } from "./stage.js";

/** Requirements of a row for its servers. */
export interface ServerChoices {
  /** Persistence, if it differs from that of the column. */
  readonly durability?: "1n" | "1e" | "1a";
  /** After how long a silent master counts as dead, in ms. By default, never within a run. */
  readonly failsOverAfterMs?: number;
  /** Whether some clients can be routed differently from the others. */
  readonly hasTwoSides?: boolean;
}

/** A row of the matrix: how to cause the fault, and how to prove that it happened. */
export interface Injection {
  readonly row: string;
  /** How the servers differ from those of other rows in the column. */
  readonly servers?: ServerChoices;
  /** The minimum duration of the fault phase, in ms. */
  readonly leastMs?: number;
  /** Whether the server runs with the clock shim. */
  readonly needsClockShim?: boolean;
  /** Whether the server must record what it has synced. */
  readonly needsSyncShim?: boolean;
  /** Additional arguments for redis-server. */
  readonly serverArguments?: readonly string[];
  /** Names of mutations for the clients of this row, as in controls with a plain counter. */
  readonly mutations?: readonly string[];
  /** Creates the environment for the clients before they start; `port` is the port that they connect to. */
  place?(port: number): Promise<Place>;
  /** The number of client processes; by default drawn from 2 to 4. */
  readonly clientCount?: number;
  /** The command timeout in ms, if it differs from that of other runs. */
  readonly commandTimeoutMs?: number;
  /** What the clients do meanwhile. By default they are idle, for directed runs. */
  work?(stage: Stage): Work;
  /** Why this machine cannot run it. Such a cell is reported as not run. */
  unavailable?(): Promise<string | undefined>;
  /**
   * Causes the fault once, and resolves when it has ended; called repeatedly while there is time. For a cell that is
   * expected `broken`, this causes two holders, equal tokens or torn effects as quickly as possible.
   */
  strike(stage: Stage): Promise<void>;
}
