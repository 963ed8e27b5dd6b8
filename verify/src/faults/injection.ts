/** One row of the matrix as what goes wrong. */

import type { Place, Stage, Work } from "./stage.js";

/** What a row needs its servers to be. */
export interface ServerChoices {
  /** What they keep on disk, where it is not what the column says. */
  readonly durability?: "1n" | "1e" | "1a";
  /** After how long others take a silent master for dead, in ms; where nothing is said, never within a run. */
  readonly failsOverAfterMs?: number;
  /** Whether some clients can be routed differently from the others. */
  readonly hasTwoSides?: boolean;
}

/** One row of the matrix: what goes wrong, and how we know that it did. */
export interface Injection {
  readonly row: string;
  /** What makes the servers a little different from those of the other rows of the column. */
  readonly servers?: ServerChoices;
  /** For how long faults strike at least, in ms. */
  readonly leastMs?: number;
  /** Whether the server needs its clock shimmed. */
  readonly needsClockShim?: boolean;
  /** Whether the server has to write down what it has synced. */
  readonly needsSyncShim?: boolean;
  /** More arguments of redis-server. */
  readonly serverArguments?: readonly string[];
  /** Mutations that the clients of this row work with, by name: the controls with a plain counter. */
  readonly mutations?: readonly string[];
  /** Makes the place in which clients run that is made before they start; `port` is what they connect to. */
  place?(port: number): Promise<Place>;
  /** How many client processes this library is driven with; drawn, from 2 to 4, if it is absent. */
  readonly clientCount?: number;
  /** How long a server is given to answer, in ms; as in all runs if it is absent. */
  readonly commandTimeoutMs?: number;
  /** What the clients do meanwhile; absent leaves them idle, as directed runs want them. */
  work?(stage: Stage): Work;
  /** Why it cannot be done on this machine; such a cell is reported, loudly, and not run. */
  unavailable?(): Promise<string | undefined>;
  /**
   * Makes it happen once, and resolves when it is over; called again and again while time is left. For a cell that
   * is expected `broken` this directs two holders, equal tokens or torn effects in the shortest way.
   */
  strike(stage: Stage): Promise<void>;
}
