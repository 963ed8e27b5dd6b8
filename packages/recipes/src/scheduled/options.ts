/** The options of `scheduled`: defaults and validation. */
import type { Filled } from "holdfast/internal";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, isAbortSignal, nativeSignal, show } from "holdfast/internal";

/** Options of `scheduled`. */
export interface ScheduledOptions {
  /**
   * The time between two calls of the schedule, or the shortest such time if it varies. A call is refused if the last
   * run began less than nine tenths of this time ago, by the server's clock. A larger value tolerates hosts whose
   * clocks differ more. A value larger than the schedule's interval skips runs. Whole milliseconds, 1,000 to
   * 31,536,000,000 (one year).
   */
  readonly everyMs: number;

  /**
   * What to do if an earlier run has not ended: `"skip"` refuses the call; `"allow"` starts another run beside it.
   * @default "skip"
   */
  readonly overlap?: "skip" | "allow" | undefined;

  /**
   * Shortest time that the lock stays held, even if the work ends sooner. Useful if other code acquires the same lock
   * without the marker; runs of this job do not need it. Whole milliseconds, 0 to 31,536,000,000, at most `maxHoldMs`.
   * @default 0
   */
  readonly minHoldMs?: number | undefined;

  /**
   * Longest time that a run may take. After that its `signal` aborts, and the lock becomes free when the run has ended
   * or its lease has expired. Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /**
   * Longest random delay before the lock is requested. It spreads the requests of the hosts, and lets a different host
   * run each time. It does not count toward `everyMs`. Whole milliseconds, 0 to half of `everyMs`.
   * @default 0
   */
  readonly jitterMaxMs?: number | undefined;

  /**
   * Length of a run's lease. The lease is renewed during the run. With a shorter lease, the next run can begin sooner
   * after a crash. A longer lease survives longer pauses of the process. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000, or half of `everyMs` if that is less, but at least 1_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Whether to write runs and refusals to the history of the name, for `readHistory` and `holdfast history`. Refusals
   * with `already-done` are never written.
   * @default false
   */
  readonly history?: boolean | undefined;

  /** Free text shown to refused callers and in inspections, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Aborts the jitter and the wait; the call rejects with the signal's reason. It does not stop a run. */
  readonly signal?: AbortSignal | undefined;
}

/** Validated options with defaults. */
export type ResolvedScheduled = Filled<Omit<ScheduledOptions, "signal">> & {
  readonly signal: AbortSignal | undefined;
};

const NAMES = [
  "everyMs",
  "overlap",
  "minHoldMs",
  "maxHoldMs",
  "jitterMaxMs",
  "leaseMs",
  "history",
  "label",
  "signal",
] as const;
const YEAR_MS = 31_536_000_000;
const LEASE_MS = 15_000;
const BRIEFEST_LEASE_MS = 1_000;

/**
 * Validates the options and fills in defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names it
 */
export function resolveScheduled(options: ScheduledOptions): ResolvedScheduled {
  const { everyMs, overlap = "skip", minHoldMs = 0, maxHoldMs = Infinity, ...rest } = checkKnown(options, NAMES);
  checkWhole("everyMs", everyMs, 1_000, YEAR_MS);
  const every = everyMs as number; // just checked
  const { jitterMaxMs = 0, history = false, label = "", signal } = rest;
  const { leaseMs = Math.max(BRIEFEST_LEASE_MS, Math.min(LEASE_MS, Math.floor(every / 2))) } = rest;
  if (overlap !== "skip" && overlap !== "allow") {
    throw new TypeError(`overlap must be "skip" or "allow"; got ${show(overlap)}`);
  }
  if (maxHoldMs !== Infinity) checkWhole("maxHoldMs", maxHoldMs, 100, YEAR_MS, " or Infinity");
  checkWhole("minHoldMs", minHoldMs, 0, Math.min(maxHoldMs, YEAR_MS));
  checkWhole("jitterMaxMs", jitterMaxMs, 0, Math.floor(every / 2));
  checkLeaseMs(leaseMs);
  checkHistory(history);
  checkLabel(label);
  checkSignal(signal);
  const native = signal && nativeSignal(signal);
  return { everyMs: every, overlap, minHoldMs, maxHoldMs, jitterMaxMs, leaseMs, history, label, signal: native };
}

/** @throws TypeError  `history` is not a boolean */
export function checkHistory(history: unknown): void {
  if (typeof history !== "boolean") throw new TypeError(`history must be true or false; got ${show(history)}`);
}

function checkSignal(signal: unknown): void {
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new TypeError(`signal must be an AbortSignal; got ${show(signal)}`);
  }
}
