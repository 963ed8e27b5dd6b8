/** Periods in which something is to run once: how long they are, and where they begin. */
import { checkWhole, show } from "../internal.js";

/**
 * A length in ms, whole, 1,000 to 31,536,000,000, which begins with each run; or a stretch of the calendar, in UTC, weeks from
 * Monday.
 */
export type Period = number | "hour" | "day" | "week";

/** A period as the server is told of it. */
export interface Division {
  readonly periodMs: number;
  /** What is added to a time before it is divided; -1 where periods begin with runs. */
  readonly shiftMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Hosts whose clocks differ by less than this agree on which period a boundary begins. */
const SLACK_MS = 30_000;

const CALENDAR: { readonly [Word in Exclude<Period, number>]: Division } = {
  hour: { periodMs: HOUR_MS, shiftMs: SLACK_MS },
  day: { periodMs: DAY_MS, shiftMs: SLACK_MS },
  // The first day of 1970 was a Thursday.
  week: { periodMs: 7 * DAY_MS, shiftMs: SLACK_MS + 3 * DAY_MS },
};

/** @throws TypeError, RangeError  it is none */
export function divisionOf(every: unknown): Division {
  if (every === "hour" || every === "day" || every === "week") return CALENDAR[every];
  if (typeof every !== "number") {
    throw new TypeError(`every must be a length in ms, "hour", "day" or "week"; got ${show(every)}`);
  }
  checkWhole("every", every, 1_000, 31_536_000_000);
  return { periodMs: every, shiftMs: -1 };
}

/** When the period is over that a run began which had read the clock at `readAtMs`. */
export function opensAtMs({ periodMs, shiftMs }: Division, readAtMs: number): number {
  if (shiftMs < 0) return Math.ceil(readAtMs + periodMs * 0.9);
  return (Math.floor((readAtMs + shiftMs) / periodMs) + 1) * periodMs - shiftMs;
}
