/** The periods of a period marker: how long they are, and when they begin. */

import { show } from "../core/keys.js";
import { checkWhole } from "../core/options.js";

/**
 * A period: either a length in whole ms, from 1,000 to 31,536,000,000, counted from the last run, or a calendar period
 * in UTC. Weeks begin on Monday.
 */
export type Period = number | "hour" | "day" | "week";

/** A period in the form that the scripts use. */
export interface Division {
  readonly periodMs: number;
  /** Added to a time before it is divided by `periodMs`; -1 for periods that begin with a run. */
  readonly shiftMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * A period begins this many ms before its calendar boundary, so that hosts agree on the period if their clocks differ
 * by less than that.
 */
const SLACK_MS = 30_000;

const CALENDAR: { readonly [Word in Exclude<Period, number>]: Division } = {
  hour: { periodMs: HOUR_MS, shiftMs: SLACK_MS },
  day: { periodMs: DAY_MS, shiftMs: SLACK_MS },
  // January 1, 1970, was a Thursday, so three days are added for weeks that begin on Monday.
  week: { periodMs: 7 * DAY_MS, shiftMs: SLACK_MS + 3 * DAY_MS },
};

/**
 * Validates a `Period` and returns it in the form that the scripts use.
 *
 * @throws TypeError, RangeError  not a `Period`
 */
export function divisionOf(every: unknown): Division {
  if (every === "hour" || every === "day" || every === "week") return CALENDAR[every];
  if (typeof every !== "number") {
    throw new TypeError(`every must be a length in ms, "hour", "day" or "week"; got ${show(every)}`);
  }
  checkWhole("every", every, 1_000, 31_536_000_000);
  return { periodMs: every, shiftMs: -1 };
}

/** Returns the earliest `readAtMs` of the next run, given that of the last run; both are in ms since 1970. */
export function opensAtMs({ periodMs, shiftMs }: Division, readAtMs: number): number {
  if (shiftMs < 0) return Math.ceil(readAtMs + periodMs * 0.9);
  return (Math.floor((readAtMs + shiftMs) / periodMs) + 1) * periodMs - shiftMs;
}
