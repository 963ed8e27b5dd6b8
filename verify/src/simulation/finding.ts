/** What the judges of a recorded run are told, and what they find. */
import type { HistoryRecord, Operation } from "../history/index.js";
import type { SharedClaim } from "./shared-claims.js";

/** What the judge has to know of a run besides its history. */
export interface Circumstances {
  readonly kind: string;
  /** From when on exclusion is not promised; Infinity if it is to the end. */
  readonly exclusionUntilMs: number;
  /** The same for tokens. */
  readonly tokensUntilMs: number;
  /** Times in which the server's clock stood still or went back. */
  readonly slowClock: readonly { readonly beganMs: number; readonly endedMs: number }[];
  /** Whether the two clocks of some process came apart, so that a loss is found by looking and not by a timer. */
  readonly hasPartedClocks: boolean;
  /** How long a call may take to settle after its deadline. */
  readonly settleMs: number;
  /** Whether the server has forgotten no queue, so that who came first is served first. */
  readonly isOrderly: boolean;
  readonly permits: number;
  /** Whether they were fewer for a while. */
  readonly isResized: boolean;
  /** When a lock that is free from `freeMs` on is granted because this waiter asks, on a network without faults. */
  readonly servedBy: (waiter: Operation, freeMs: number) => number;
  /** When a waiter whose time was over had left the queue; Infinity if it had not, or left before its time was over. */
  readonly leftMs: (waiter: Operation) => number;
  /** Claims that several callers have shared, by owner id. */
  readonly shared: ReadonlyMap<string, SharedClaim>;
  /** Token of the first grant to each owner, which the server may have made again since. */
  readonly firstTokens: ReadonlyMap<string, number>;
}

/** Something that must not happen, and a lock it happened to. */
export interface Finding {
  readonly property: string;
  readonly name: string;
  readonly text: string;
  readonly atMs: number;
  readonly records: readonly HistoryRecord[];
}
