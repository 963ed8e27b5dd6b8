/** Parses and formats durations, and sleeps longer than one timer allows. */
import { usageError } from "./exit-codes.js";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WRITTEN = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
/** One year, as for leases. A longer duration is probably a typo. */
const LONGEST_MS = 31_536_000_000;

/** The allowed values in whole ms, both limits included. */
interface Range {
  readonly minMs?: number;
  readonly maxMs?: number;
  /** Words that the caller accepts in place of a duration. They are only listed in the error message. */
  readonly words?: readonly string[];
}

/**
 * Parses `250ms`, `30s`, `5m`, `1h`, `2d` or `1h30m`. A bare number is seconds, and fractions are allowed.
 *
 * @param flag   for the message, as the user typed it: `--wait`
 * @returns whole ms, rounded
 * @throws CliError 64  not a duration, or out of range
 */
export function parseDuration(flag: string, text: string, range: Range = {}): number {
  const { minMs = 0, maxMs = LONGEST_MS, words = [] } = range;
  const ms = durationOf(text);
  if (ms === undefined) {
    const others = words.length === 0 ? "" : `${words.join(", ")} or `;
    throw usageError(
      `${flag} must be ${others}a duration such as 250ms, 30s, 5m, 1h30m or a number of seconds; got "${text}"`,
    );
  }
  if (ms < minMs || ms > maxMs) {
    throw usageError(`${flag} must be ${formatMs(minMs)} to ${formatMs(maxMs)}; got "${text}"`);
  }
  return ms;
}

function durationOf(text: string): number | undefined {
  if (/^\d+(?:\.\d+)?$|^\.\d+$/.test(text)) return Math.round(Number(text) * 1_000);
  if (!WRITTEN.test(text)) return undefined;
  let ms = 0;
  let lastUnitMs = Number.POSITIVE_INFINITY;
  for (const [, amount = "", unit = ""] of text.matchAll(PART)) {
    const unitMs = UNIT_MS[unit] as number;
    // "30s1h" is probably a typing error.
    if (unitMs >= lastUnitMs) return undefined;
    lastUnitMs = unitMs;
    ms += Number(amount) * unitMs;
  }
  return Math.round(ms);
}

/** The two biggest units of a duration: `250ms`, `24s`, `3m12s`, `1h04m`, `2d03h`. Zero or less is `0s`. */
export function formatMs(durationMs: number): string {
  if (durationMs <= 0) return "0s";
  if (durationMs < 1_000) return `${Math.round(durationMs)}ms`;
  const seconds = Math.floor(durationMs / 1_000);
  if (seconds < 60) return `${seconds}s`;
  const two = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${String(small).padStart(2, "0")}${smallUnit}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return two(minutes, "m", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return two(hours, "h", minutes % 60, "m");
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** Node's timers overflow beyond 2^31 - 1 ms, about 24.8 days, and then fire immediately. */
const LONGEST_TIMER_MS = 2_000_000_000;

/**
 * Resolves after `durationMs`, however long that is, or immediately if the signal aborts. Never rejects: the caller
 * checks the signal.
 */
export function sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const endsAtMs = performance.now() + durationMs;
    let timer: NodeJS.Timeout | undefined;
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const next = (): void => {
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0 || signal?.aborted) done();
      else timer = setTimeout(next, Math.min(leftMs, LONGEST_TIMER_MS));
    };
    signal?.addEventListener("abort", done);
    next();
  });
}
