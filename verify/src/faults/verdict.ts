/** The verdict on one run of a cell. */
import type { Cell } from "./cell.js";
import type { ClientLibrary } from "./liveness/messages.js";

/** A violated property, with the records that show it. */
export interface Breach {
  readonly property: string;
  readonly lockName: string;
  readonly message: string;
  /** A picture of the operations as SVG; absent if a picture would not help. */
  readonly picture?: string;
}

/**
 * - `ok`: the run showed what the cell expects
 * - `violation`: a guarantee was violated
 * - `toothless`: nothing was guaranteed, but the expected violation did not occur
 * - `void`: the fault did not strike, or the history shows nothing
 * - `unknown`: a search did not finish
 * - `unavailable`: this machine cannot cause the fault
 */
export type CellOutcome = "ok" | "violation" | "toothless" | "void" | "unknown" | "unavailable";

/** The verdict. */
export interface CellVerdict {
  readonly cell: Cell;
  readonly seed: number;
  readonly subject: string;
  /** The client library of a liveness cell, if not ioredis. */
  readonly library?: ClientLibrary;
  readonly outcome: CellOutcome;
  readonly operations: number;
  readonly faults: number;
  readonly tookMs: number;
  readonly breaches: readonly Breach[];
  /** The number of breaches by property, including those that are not shown. */
  readonly breached?: Readonly<Record<string, number>>;
  /** The number of decided cases by property; a property with 0 has shown nothing. */
  readonly checked: Readonly<Record<string, number>>;
  /** Notes for the reader: what struck, what was left out, why it is void or unavailable. */
  readonly notes: readonly string[];
}
