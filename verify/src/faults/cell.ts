/** The terms of the fault matrix: fault, servers, kind of lock, and expected outcome. */

/**
 * The servers: 1n one without persistence, 1e one that syncs its file every second, 1a one that syncs every write; T
 * Sentinel, C cluster, Q3 and Q5 quorums.
 */
export type Column = "1n" | "1e" | "1a" | "T" | "C" | "Q3" | "Q5";

/**
 * m mutex, r reentrant, w read-write, s semaphore, f fair, k multi-lock, t fenced, a renewed automatically, l latch;
 * e election, b barrier, c condition, which the reference matrix does not contain.
 */
export type Letter = "m" | "r" | "w" | "s" | "f" | "k" | "t" | "a" | "l" | "e" | "b" | "c";

/**
 * The expected outcome of a cell.
 *
 * - `kept` (0): no guarantee may be violated
 * - `broken` (!): nothing is guaranteed, and the run must show a violation to prove that the check can detect one
 * - `reported` (~): nothing is guaranteed or forced; violations are counted
 * - `refused` (R): the library must refuse to work
 */
export type Expectation = "kept" | "broken" | "reported" | "refused";

/** What a cell checks: leases, only tokens, or the effects of holders on a protected resource. */
export type Judged = "leases" | "tokens" | "effects";

/** One cell of the matrix. */
export interface Cell {
  /**
   * The id for commands and reports, such as `J10/1n/w`. Variants of a row have a suffix, such as `J38-plain/1n/t`.
   */
  readonly id: string;
  /** The row: J01 to J38, J25q, J36g; and J38-plain, J38-seeded, J25-plain, J25-seeded, J01-unfenced, J01-fenced. */
  readonly row: string;
  readonly column: Column;
  readonly letter: Letter;
  readonly expectation: Expectation;
  readonly judged: Judged;
  /** Whether the cell is in the quick run for each change. */
  readonly isQuick: boolean;
}
