/** The wait options of recipes, validated like those of every acquire. */
import { DEFAULTS } from "holdfast";
import { resolve } from "holdfast/internal";

/** Options for the wait of a recipe. */
export interface WaitOptions {
  /** Longest wait. Milliseconds, 0 or more; Infinity waits forever. @default 10_000 */
  readonly waitMs?: number | undefined;
  /** Aborts the wait; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Validates the options and fills in defaults. @throws TypeError, RangeError  an invalid value or an unknown option */
export function resolveWait(options: WaitOptions): {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
} {
  const { waitMs, signal } = resolve(options, { ...DEFAULTS, signal: undefined, amount: 1 }, ["waitMs", "signal"]);
  return { waitMs, signal };
}
