/** The terms of the fault matrix: the fault, the servers, the kind of lock, and what is promised in that case. */

/** Servers: one without a file, one that syncs its file every second, one that syncs it at every write; and to come. */
export type Column = "1n" | "1e" | "1a" | "T" | "C" | "Q3" | "Q5";

/**
 * m mutex, r re-entrant, w read-write, s semaphore, f fair, k multi-lock, t fenced, a renewed by itself, l latch; e
 * election, b barrier, c condition, which the reference has no cells of.
 */
export type Letter = "m" | "r" | "w" | "s" | "f" | "k" | "t" | "a" | "l" | "e" | "b" | "c";

/**
 * What the matrix expects of a cell.
 *
 * - `kept` (0): nothing that is promised may be violated
 * - `broken` (!): nothing is promised, and the run has to show a violation, or it has no teeth
 * - `reported` (~): nothing is promised and nothing is forced; what happens is counted
 * - `refused` (R): the library has to refuse to work
 */
export type Expectation = "kept" | "broken" | "reported" | "refused";

/** What a cell judges: leases, tokens alone, or what holders did to a thing that the lock guards. */
export type Judged = "leases" | "tokens" | "effects";

/** One field of the matrix. */
export interface Cell {
  /** For commands and reports, e.g. `J10/1n/w`; a row that is no plain fault adds its name, e.g. `J38-plain/1n/t`. */
  readonly id: string;
  /** The row: J01 to J38, J25q, J36g; and J38-plain, J38-seeded, J25-plain, J25-seeded, J01-unfenced, J01-fenced. */
  readonly row: string;
  readonly column: Column;
  readonly letter: Letter;
  readonly expectation: Expectation;
  readonly judged: Judged;
  /** Whether it belongs to the run of a change. */
  readonly isQuick: boolean;
}
