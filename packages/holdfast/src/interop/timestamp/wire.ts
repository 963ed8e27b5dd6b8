/** What the scripts are told of a dialect and of the options of a lock: everything in the units that they calculate with. */
import type { Runtime } from "../../internal.js";
import type { TimestampDialect } from "./dialect.js";

/** How long a fence outlives the keys of a grant; see docs/adr/006. */
const FENCE_MS = 600_000;
/** Besides the clocks that may differ: what rounding and slow clients need. */
const GRACE_MS = 1_000;

/** See the file header. */
export interface Wire {
  readonly unitMs: 1_000 | 1 | 0;
  /** In units. */
  readonly padding: number;
  readonly before: string;
  readonly graceMs: number;
  readonly skewMs: number;
  readonly marginMs: number;
  readonly latestMs: number;
  readonly reached: 1 | 0;
  /** A value of the other clients that ends later than so many ms from now was not written by a right clock. */
  readonly longestMs: number;
  /** What a value looks like, for people. */
  readonly expected: string;
}

/** The wire of a lock. */
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
      expected: "a text",
    };
  }
  const { unit, leaseMs, paddingMs, takeoverPaddingMs = 0, takeoverWhen, mark, losersWrite } = dialect;
  const unitMs = unit === "s" ? 1_000 : 1;
  // Somebody's now + lease, rounded, by a clock that may be ahead.
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

/** What the server is asked for, so that a holder may rely on `leaseMs` however far the clocks of others are ahead. */
export function leaseArgs(wire: Wire, leaseMs: number): { readonly leaseMs: number; readonly fenceMs: number } {
  const servedMs = leaseMs + wire.skewMs;
  return { leaseMs: servedMs, fenceMs: servedMs + wire.padding * wire.unitMs + wire.graceMs + FENCE_MS };
}

/** What stands after the number in a value of ours, or all of it: another one each time. */
export function newMark(dialect: TimestampDialect, runtime: Runtime): string {
  if (dialect.unit === "none") return uuid(runtime);
  // With six digits a number of seconds is still exact as floating point, and never rounds up.
  return dialect.mark === "fraction" ? `.${String(Math.floor(runtime.random() * 1e6)).padStart(6, "0")}` : "";
}

/** Version 4, from the runtime's own random numbers. */
function uuid(runtime: Runtime): string {
  return "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replaceAll("x", () => Math.floor(runtime.random() * 16).toString(16));
}
