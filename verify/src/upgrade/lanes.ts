/** The locks that the workers contend for. */

/** One way to contend for a lock; two lanes may use the same name. */
export interface Lane {
  readonly kind: "mutex" | "semaphore" | "read-write-lock" | "election";
  readonly name: string;
  readonly leaseMs: number;
  readonly fairness: "cohort" | "strict";
  /** The number of callers in each worker. */
  readonly callers: number;
  /** The duration of its slow sections in ms, longer than an unconfirmed grant lasts. */
  readonly slowMs?: readonly [least: number, most: number];
}

/** The permits of the semaphore. */
export const PERMITS = 2;

/**
 * The longest lease that a worker holds when it is killed. With a longer one, its name would be blocked for most of a
 * short run.
 */
export const LONGEST_KILLED_MS = 5_000;

export const LANES: readonly Lane[] = [
  { kind: "mutex", name: "brief", leaseMs: 2_000, fairness: "cohort", callers: 2 },
  { kind: "mutex", name: "brief", leaseMs: 2_000, fairness: "strict", callers: 1 },
  { kind: "mutex", name: "medium", leaseMs: 5_000, fairness: "strict", callers: 1 },
  { kind: "mutex", name: "long", leaseMs: 30_000, fairness: "cohort", callers: 2 },
  { kind: "mutex", name: "long", leaseMs: 30_000, fairness: "strict", callers: 1 },
  { kind: "mutex", name: "slow", leaseMs: 30_000, fairness: "strict", callers: 1, slowMs: [4_500, 6_500] },
  { kind: "semaphore", name: "pool", leaseMs: 5_000, fairness: "strict", callers: 1 },
  { kind: "read-write-lock", name: "book", leaseMs: 2_000, fairness: "strict", callers: 1 },
  { kind: "election", name: "chief", leaseMs: 30_000, fairness: "strict", callers: 1 },
];
