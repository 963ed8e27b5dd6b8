/** The input and the findings of the judges of a recorded run. */
import type { HistoryRecord, Operation } from "../history/index.js";
import type { SharedClaim } from "./shared-claims.js";

/** What the judge must know about a run besides its history. */
export interface Circumstances {
  readonly kind: string;
  /** When the guarantee of exclusion ended; Infinity if it never did. */
  readonly exclusionUntilMs: number;
  /** The same for tokens. */
  readonly tokensUntilMs: number;
  /** Times in which the server's clock stopped or was behind. */
  readonly slowClock: readonly { readonly beganMs: number; readonly endedMs: number }[];
  /** Whether the two clocks of some process diverged, so that a loss is noticed by polling and not by a timer. */
  readonly hasPartedClocks: boolean;
  /** How long a call may take to settle after its deadline. */
  readonly settleMs: number;
  /** Whether the server has kept all queues, so that waiters are served in order of arrival. */
  readonly isOrderly: boolean;
  readonly permits: number;
  /** Whether there were fewer permits for a while. */
  readonly isResized: boolean;
  /**
   * The time by which a lock that is free from `freeMs` on is granted because this waiter polls, on a network without
   * faults.
   */
  readonly servedBy: (waiter: Operation, freeMs: number) => number;
  /** When a waiter that timed out had left the queue; Infinity if it had not, or if it left earlier. */
  readonly leftMs: (waiter: Operation) => number;
  /** Claims that several callers shared, by owner id. */
  readonly shared: ReadonlyMap<string, SharedClaim>;
  /** The token of the first grant to each owner; the server may have repeated the grant since. */
  readonly firstTokens: ReadonlyMap<string, number>;
}

/** A violation, and the lock that it concerns. */
export interface Finding {
  readonly property: string;
  readonly name: string;
  readonly text: string;
  readonly atMs: number;
  readonly records: readonly HistoryRecord[];
}
