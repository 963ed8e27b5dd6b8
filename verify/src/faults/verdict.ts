/** What came of one run of one cell. */
import type { Cell } from "./cell.js";
import type { ClientLibrary } from "./liveness/messages.js";

/** A violated property, and the records that show it. */
export interface Breach {
  readonly property: string;
  readonly lockName: string;
  readonly message: string;
  /** The operations that show it, as SVG; absent where a picture says nothing. */
  readonly picture?: string;
}

/**
 * - `ok`: what the cell expects is what was seen
 * - `violation`: something promised did not hold
 * - `toothless`: nothing was promised, and nothing went wrong
 * - `void`: the fault did not strike, or the history shows nothing
 * - `unknown`: a search did not come to an end
 * - `unavailable`: this machine cannot make the fault
 */
export type CellOutcome = "ok" | "violation" | "toothless" | "void" | "unknown" | "unavailable";

/** See the file header. */
export interface CellVerdict {
  readonly cell: Cell;
  readonly seed: number;
  readonly subject: string;
  /** With which client library a liveness cell was played, if not ioredis. */
  readonly library?: ClientLibrary;
  readonly outcome: CellOutcome;
  readonly operations: number;
  readonly faults: number;
  readonly tookMs: number;
  readonly breaches: readonly Breach[];
  /** Breaches by property, also those that are not shown. */
  readonly breached?: Readonly<Record<string, number>>;
  /** Cases decided by property; a property with 0 has shown nothing. */
  readonly checked: Readonly<Record<string, number>>;
  /** For the reader: what struck, what was left out, why it is void or unavailable. */
  readonly notes: readonly string[];
}
