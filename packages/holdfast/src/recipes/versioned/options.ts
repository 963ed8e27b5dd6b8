import { checkKnown, checkWhole } from "../../internal.js";
import { resolveWait, type WaitOptions } from "../wait-options.js";

/** How often to try, and how. */
export interface UpdateOptions extends WaitOptions {
  /** How often the function is run at most. Whole, 1 to 1,000,000. @default 10 */
  readonly attemptsMax?: number | undefined;

  /**
   * After so many conflicts the rest is tried under the mutex of that name, one writer at a time. Lower ends sooner under load;
   * Infinity never does it. Whole, 1 to 1,000,000, or Infinity.
   * @default Infinity
   */
  readonly promoteAfter?: number | undefined;

  /** Longest wait for that mutex. Milliseconds, 0 or more; Infinity never gives up. @default 10_000 */
  readonly waitMs?: number | undefined;

  /** Ends it before the next attempt, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const ATTEMPTS_MAX = 1_000_000;

/** @throws TypeError, RangeError  a wrong option, by its name */
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
