/** What a scheduled job may be told, its defaults, and the checks. */
import type { Filled } from "../../internal.js";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, isAbortSignal, nativeSignal, show } from "../../internal.js";

/** How a function is to be run by one of many instances. */
export interface ScheduledOptions {
  /**
   * How often it is called by each instance: the time between two fires of the schedule, or the smallest if they differ. A call is
   * refused when the last run began less than nine tenths of it ago, by the server's clock. Larger refuses hosts whose clocks are
   * further apart; too large skips fires. Whole milliseconds, 1,000 to 31,536,000,000 (a year).
   */
  readonly everyMs: number;

  /**
   * What to do while a run of before is still going: `"skip"` does not start another beside it; `"allow"` does.
   * @default "skip"
   */
  readonly overlap?: "skip" | "allow" | undefined;

  /**
   * How long the lock stays taken at least, from the grant, even if the work ends at once: for those who take the same lock by
   * other means. The marker does not need it. Whole milliseconds, 0 to 31,536,000,000, at most `maxHoldMs`.
   * @default 0
   */
  readonly minHoldMs?: number | undefined;

  /**
   * A run that takes longer is cut off: its `signal` aborts, and the lock is free when it has ended or its lease is over.
   * Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /**
   * Longest random delay before the lock is asked for, so that hosts do not all ask in the same moment, and it is not always the same
   * one that runs. It does not count for `everyMs`. Whole milliseconds, 0 to half of `everyMs`.
   * @default 0
   */
  readonly jitterMaxMs?: number | undefined;

  /**
   * Length of the lease of a run, which is renewed. Shorter lets the next run begin sooner after a crash; longer rides out longer pauses.
   * Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000, or half of `everyMs` if that is less, and 1_000 at least
   */
  readonly leaseMs?: number | undefined;

  /**
   * Whether runs and refusals are told to the history of the name, for `readHistory` and `holdfast history`. Not told is the refusal
   * that is no news: that another instance has run.
   * @default false
   */
  readonly history?: boolean | undefined;

  /** Free text shown to whoever is refused or looks, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Ends the jitter and the wait, and rejects with its reason; never ends a run. */
  readonly signal?: AbortSignal | undefined;
}

/** The options with their defaults, checked. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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

/** @throws TypeError */
export function checkHistory(history: unknown): void {
  if (typeof history !== "boolean") throw new TypeError(`history must be true or false; got ${show(history)}`);
}

function checkSignal(signal: unknown): void {
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new TypeError(`signal must be an AbortSignal; got ${show(signal)}`);
  }
}
