/** The measurements of a liveness cell, and how they are compared with targets. */
import type { Breach } from "../verdict.js";

/** The property that a missed target violates. */
export const TARGET_MISSED = "L8";

/** One measurement. Infinity means that the event did not occur while the run observed. */
export interface Measure {
  /** What was measured, as the beginning of a sentence, such as `the live waiter was granted after`. */
  readonly what: string;
  readonly value: number;
  readonly unit: "s" | "ms" | "%" | "/s" | "";
  /** The largest value that meets the target. */
  readonly most?: number;
  /** The smallest value that meets the target. */
  readonly least?: number;
}

/** A measurement as a line of the report, such as `the live waiter was granted after 14.9 s (target <= 16 s)`. */
export function textOf({ what, value, unit, most, least }: Measure): string {
  const targets = [
    ...(most === undefined ? [] : [`<= ${show(most, unit)}`]),
    ...(least === undefined ? [] : [`>= ${show(least, unit)}`]),
  ];
  const target = targets.length === 0 ? "" : ` (target ${targets.join(" and ")})`;
  return Number.isFinite(value) ? `${what} ${show(value, unit)}${target}` : `${what}: never${target}`;
}

/** Whether it meets its target. Always true without a target, never true for NaN. */
export function isMet({ value, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Measure): boolean {
  return value <= most && value >= least;
}

/** A breach for each measurement that misses its target, and how many have a target. */
export function judgeMeasures(
  lockName: string,
  measures: readonly Measure[],
): { readonly breaches: readonly Breach[]; readonly checked: number } {
  const judged = measures.filter(({ most, least }) => most !== undefined || least !== undefined);
  const breaches = judged
    // Infinity without an upper bound means that the event never happened, which is a failure too.
    .filter((measure) => !isMet(measure) || (measure.most !== undefined && measure.value === Number.POSITIVE_INFINITY))
    .map((measure) => ({ property: TARGET_MISSED, lockName, message: textOf(measure) }));
  return { breaches, checked: judged.length };
}

function show(value: number, unit: Measure["unit"]): string {
  const digits = unit === "s" || unit === "/s" ? 1 : 0;
  const number = Number(value.toFixed(digits)).toString();
  return unit === "s" || unit === "ms" || unit === "%" ? `${number} ${unit}` : `${number}${unit}`;
}
