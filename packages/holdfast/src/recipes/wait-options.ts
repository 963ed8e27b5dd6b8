/** How long a caller of a recipe waits, checked as those of every acquire. */
import { DEFAULTS } from "../index.js";
import { resolve } from "../internal.js";

/** How long to wait. */
export interface WaitOptions {
  /** Longest wait. Milliseconds, 0 or more; Infinity never gives up. @default 10_000 */
  readonly waitMs?: number | undefined;
  /** Ends the wait, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** @throws TypeError, RangeError  a wrong value, or an option beside these two */
export function resolveWait(options: WaitOptions): {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
} {
  const { waitMs, signal } = resolve(options, { ...DEFAULTS, signal: undefined, amount: 1 }, ["waitMs", "signal"]);
  return { waitMs, signal };
}
