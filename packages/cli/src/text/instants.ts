/** Parses and formats points in time. */
import { parseDuration } from "../frame/durations.js";
import { usageError } from "../frame/exit-codes.js";

const CLOCK = /^(\d{1,2}):(\d{2})$/;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Parses a time in the future: `18:30` (the next one, local time), `2026-11-23` (midnight UTC), or `2026-11-23T18:30`,
 * which is local unless `Z` or an offset follows.
 *
 * @param flag  for the message, as the user typed it
 * @returns ms since 1970
 * @throws CliError 64  not a time, or a time in the past
 */
export function parseInstant(flag: string, text: string, nowMs: number): number {
  const atMs = clockAtMs(text, nowMs) ?? (ISO.test(text) ? Date.parse(text.replace(" ", "T")) : Number.NaN);
  if (Number.isNaN(atMs)) {
    throw usageError(`${flag} must be a time such as 18:30 or 2026-11-23T18:30 (local, or with Z); got "${text}"`);
  }
  if (atMs <= nowMs) throw usageError(`${flag} must be in the future; ${new Date(atMs).toISOString()} has passed`);
  return atMs;
}

function clockAtMs(text: string, nowMs: number): number | undefined {
  const [, hours, minutes] = CLOCK.exec(text) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const at = new Date(nowMs);
  at.setHours(Number(hours), Number(minutes), 0, 0);
  if (at.getTime() <= nowMs) at.setDate(at.getDate() + 1);
  return at.getTime();
}

/** Returns the end that `--for D` or `--until T` sets; undefined if neither was given. @throws CliError 64 */
export function endOf(
  given: { readonly for: string | undefined; readonly until: string | undefined },
  nowMs: number,
): number | undefined {
  if (given.for !== undefined && given.until !== undefined)
    throw usageError("--for and --until both set the end: use only one");
  if (given.for !== undefined) return nowMs + parseDuration("--for", given.for, { minMs: 1_000 });
  return given.until === undefined ? undefined : parseInstant("--until", given.until, nowMs);
}

/** `2026-11-22 06:00:02Z`: in seconds and UTC, because the hosts may be in different time zones. */
export function formatInstant(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
}
