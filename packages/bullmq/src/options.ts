/** Options of `withLock`, their defaults and checks. */

import type { Refusal } from "@holdfast/recipes";
import type { MakeLock } from "@holdfast/recipes/internal";
import type { Job } from "bullmq";
import { DEFAULTS } from "holdfast";
import { checkKnown, checkWhole, resolve, show } from "holdfast/internal";

/**
 * What happens to a job if its lock is held or paused, or if the server temporarily does not reply.
 *
 * - `{ delayMs, delaysMax }`: the job moves to the delayed jobs, for a random time between half and one and a half
 *   times `delayMs`. Whole milliseconds, 1 to 86,400,000. After `delaysMax` moves per attempt, the job fails with an
 *   error that names the holder. `delaysMax` is 0 or more; the default is Infinity. Every start that was neither a
 *   failure nor a stall counts as a move, including moves by the processor itself.
 * - `{ waitMs }`: the job waits in the worker, in the queue of the lock, and fails after that time. Milliseconds, 0 or
 *   more, or Infinity.
 * - `"fail"`: the job fails immediately
 */
export type WhenBusy =
  | { readonly delayMs: number; readonly delaysMax?: number | undefined }
  | { readonly waitMs: number }
  | "fail";

/** Options of `withLock`: how jobs hold their lock, and what happens to jobs that do not get it. */
export interface WithLockOptions<Data = unknown, Result = unknown, Name extends string = string> {
  /** What happens to a job that does not get its lock. @default { delayMs: 5_000 } */
  readonly whenBusy?: WhenBusy | undefined;

  /** As in `acquire`: how long the lock stays held after its process crashes. @default that of the Holdfast, 30_000 */
  readonly leaseMs?: number | undefined;

  /** As in `acquire`: a processor that runs longer loses its lease. @default Infinity */
  readonly maxHoldMs?: number | undefined;

  /** Free text shown to waiting callers, at most 256 bytes. @default the name of the queue and the id of the job */
  readonly label?: string | undefined;

  /**
   * Returns the lock for a key, for example `(holdfast, name) => holdfast.semaphore(name, { permits: 3 })`.
   * @default a mutex, or a redlock if the Holdfast uses several independent servers
   */
  readonly lock?: MakeLock | undefined;

  /** Called for each job that did not get its lock, before it is delayed or fails, with the reason and the holder. */
  readonly onBusy?: ((refusal: Refusal, job: Job<Data, Result, Name>) => void) | undefined;
}

/** The values of `{ delayMs, delaysMax }` in `WhenBusy`. */
export interface Delaying {
  readonly delayMs: number;
  readonly delaysMax: number;
}

/** Checked options with defaults. */
export interface ResolvedWithLock<Data, Result, Name extends string>
  extends Omit<WithLockOptions<Data, Result, Name>, "whenBusy"> {
  readonly waitMs: number;
  readonly delaying: Delaying | undefined;
}

const DAY_MS = 86_400_000;

/** Checks the options and adds the defaults. @throws TypeError, RangeError  invalid option; the message names it */
export function resolveWithLock<Data, Result, Name extends string>(
  options: WithLockOptions<Data, Result, Name>,
): ResolvedWithLock<Data, Result, Name> {
  const known = checkKnown(options, ["whenBusy", "leaseMs", "maxHoldMs", "label", "lock", "onBusy"]);
  const { whenBusy = { delayMs: 5_000 }, ...rest } = known;
  const { leaseMs, maxHoldMs, label, lock, onBusy } = rest;
  for (const [name, value] of Object.entries({ lock, onBusy })) {
    if (value !== undefined && typeof value !== "function") {
      throw new TypeError(`${name} must be a function; got ${show(value)}`);
    }
  }
  const busy = checkWhenBusy(whenBusy);
  const acquiring = { waitMs: busy.waitMs, leaseMs, maxHoldMs, label };
  const given = Object.entries(acquiring).filter(([, value]) => value !== undefined);
  resolve(Object.fromEntries(given), { ...DEFAULTS, signal: undefined, amount: 1 });
  return { ...rest, ...busy };
}

function checkWhenBusy(whenBusy: WhenBusy): Pick<ResolvedWithLock<never, never, never>, "waitMs" | "delaying"> {
  if (whenBusy === "fail") return { waitMs: 0, delaying: undefined };
  if (typeof whenBusy === "object" && whenBusy !== null) {
    if ("waitMs" in whenBusy) return { waitMs: checkKnown(whenBusy, ["waitMs"]).waitMs as number, delaying: undefined };
    if ("delayMs" in whenBusy) {
      const { delayMs, delaysMax = Infinity } = checkKnown(whenBusy, ["delayMs", "delaysMax"]);
      checkWhole("whenBusy.delayMs", delayMs, 1, DAY_MS);
      if (delaysMax !== Infinity)
        checkWhole("whenBusy.delaysMax", delaysMax, 0, Number.MAX_SAFE_INTEGER, " or Infinity");
      // The cast is safe because `checkWhole` accepts only numbers.
      return { waitMs: 0, delaying: { delayMs: delayMs as number, delaysMax } };
    }
  }
  throw new TypeError(`whenBusy must be "fail", { waitMs } or { delayMs, delaysMax }; got ${show(whenBusy)}`);
}
