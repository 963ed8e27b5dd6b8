import { checkKnown, checkWhole } from "holdfast/internal";
import { resolveWait, type WaitOptions } from "../wait-options.js";

/** Options of `Versioned.update`. */
export interface UpdateOptions extends WaitOptions {
  /**
   * Maximum number of attempts. Each attempt runs the function once. A whole number from 1 to 1,000,000. @default 10
   */
  readonly attemptsMax?: number | undefined;

  /**
   * Number of conflicts after which further attempts hold the mutex with the same name, so that such writers take
   * turns. With a lower number, an update succeeds sooner under load. A whole number from 1 to 1,000,000, or Infinity
   * to never use the mutex.
   * @default Infinity
   */
  readonly promoteAfter?: number | undefined;

  /** Longest wait for that mutex. Milliseconds, 0 or more; Infinity waits forever. @default 10_000 */
  readonly waitMs?: number | undefined;

  /** Aborts the update before its next step; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const ATTEMPTS_MAX = 1_000_000;

/**
 * Validates the options and fills in defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names it
 */
export function resolveUpdate(options: UpdateOptions): {
  readonly attemptsMax: number;
  readonly promoteAfter: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
} {
  const known = checkKnown(options, ["attemptsMax", "promoteAfter", "waitMs", "signal"]);
  const { attemptsMax = 10, promoteAfter = Infinity, ...wait } = known;
  checkWhole("attemptsMax", attemptsMax, 1, ATTEMPTS_MAX);
  if (promoteAfter !== Infinity) checkWhole("promoteAfter", promoteAfter, 1, ATTEMPTS_MAX, " or Infinity");
  return { attemptsMax, promoteAfter, ...resolveWait(wait) };
}
