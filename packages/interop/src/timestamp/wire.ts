/**
 * Translates a dialect and the options of a lock into script arguments, in the units that the scripts calculate with.
 */
import type { Runtime } from "holdfast/internal";
import type { TimestampDialect } from "./dialect.js";

/** How long a fence outlives the keys of a grant, in ms; see docs/adr/006. */
const FENCE_MS = 600_000;
/** How long a key outlives its value in addition to the clock skew, in ms: covers rounding and slow clients. */
const GRACE_MS = 1_000;

/** The script arguments that follow from the dialect and the options of a lock. */
export interface Wire {
  /** Unit of the value, in ms; 0 if the value is not a time. */
  readonly unitMs: 1_000 | 1 | 0;
  /** Added to the end of a lease, in units. */
  readonly padding: number;
  /** Text before the number. */
  readonly before: string;
  /** How long a key outlives its value, in ms. */
  readonly graceMs: number;
  /** Largest difference between clocks, in ms. */
  readonly skewMs: number;
  /** How long a lock still counts as held after its value has ended, in ms. */
  readonly marginMs: number;
  /**
   * A value that was computed before a grant ends at most this long after it, in ms. -1 if late clients never write.
   */
  readonly latestMs: number;
  /** 1 if a lock ends when its time is reached, 0 if the time must have passed. */
  readonly reached: 1 | 0;
  /** A foreign value that ends more than this many ms from now comes from a wrong clock or a longer lease. */
  readonly longestMs: number;
  /** Describes a valid value in error messages. */
  readonly expected: string;
}

/** Returns the script arguments for a dialect and the options of a lock. */
export function wireOf(dialect: TimestampDialect, options: { maxClockSkewMs: number; takeoverMarginMs: number }): Wire {
  const { maxClockSkewMs: skewMs, takeoverMarginMs: marginMs } = options;
  if (dialect.unit === "none") {
    return {
      unitMs: 0,
      padding: 0,
      before: "",
      graceMs: 0,
      skewMs: 0,
      marginMs: 0,
      latestMs: -1,
      reached: 1,
      longestMs: Infinity,
      expected: "a string",
    };
  }
  const { unit, leaseMs, paddingMs, takeoverPaddingMs = 0, takeoverWhen, mark, losersWrite } = dialect;
  const unitMs = unit === "s" ? 1_000 : 1;
  // The latest value of another client: now + lease, rounded up, by a clock that may be ahead.
  const longestMs = leaseMs + paddingMs + takeoverPaddingMs + unitMs + skewMs;
  return {
    unitMs,
    padding: paddingMs / unitMs,
    before: mark === "leading-zero" ? "0" : "",
    graceMs: GRACE_MS + skewMs,
    skewMs,
    marginMs,
    latestMs: losersWrite ? longestMs : -1,
    reached: takeoverWhen === "reached" ? 1 : 0,
    longestMs,
    expected: unit === "s" ? "a time in seconds since 1970" : "a time in milliseconds since 1970",
  };
}

/**
 * Returns the lease and the fence lifetime to request, in ms. The lease includes the clock skew, so that the holder can
 * rely on `leaseMs` even if the clocks of other clients are ahead.
 */
export function leaseArgs(wire: Wire, leaseMs: number): { readonly leaseMs: number; readonly fenceMs: number } {
  const servedMs = leaseMs + wire.skewMs;
  return { leaseMs: servedMs, fenceMs: servedMs + wire.padding * wire.unitMs + wire.graceMs + FENCE_MS };
}

/**
 * Returns the text after the number in Holdfast's value: a new random fraction, or nothing. If values are not times,
 * returns the whole value, a new UUID.
 */
export function newMark(dialect: TimestampDialect, runtime: Runtime): string {
  if (dialect.unit === "none") return uuid(runtime);
  // With six digits, a number of seconds still fits a floating-point number and never rounds up.
  return dialect.mark === "fraction" ? `.${String(Math.floor(runtime.random() * 1e6)).padStart(6, "0")}` : "";
}

/** Returns a version 4 UUID from the runtime's random numbers, which tests can control. */
function uuid(runtime: Runtime): string {
  return "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replaceAll("x", () => Math.floor(runtime.random() * 16).toString(16));
}
