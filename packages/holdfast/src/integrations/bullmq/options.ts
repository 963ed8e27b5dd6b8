/** What `withLock` can be told, its defaults, and the checks. */
import type { Job } from "bullmq";
import { DEFAULTS } from "../../index.js";
import { checkKnown, checkWhole, resolve, show } from "../../internal.js";
import type { Refusal } from "../../recipes/refusal.js";
import type { MakeLock } from "../../recipes/under-lock.js";

/**
 * What becomes of a job whose lock is held, or paused, or whose server cannot be asked just now.
 *
 * - `{ delayMs, delaysMax }`: it is moved to the delayed jobs, for half to one and a half of `delayMs`, and comes again; whole
 *   milliseconds, 1 to 86,400,000. After `delaysMax` moves for each attempt, 0 or more, it fails with an error that says who
 *   has the lock; Infinity, the default, never does. Moves are the starts that were neither failures nor stalls, so those that the processor
 *   makes itself count as well.
 * - `{ waitMs }`: it waits in the worker, in the queue of the lock, and fails after that; milliseconds, 0 or more, or Infinity
 * - `"fail"`: it fails at once
 */
export type WhenBusy =
  | { readonly delayMs: number; readonly delaysMax?: number | undefined }
  | { readonly waitMs: number }
  | "fail";

/** How jobs hold their lock, and what becomes of those that do not get it. */
export interface WithLockOptions<Data = unknown, Result = unknown, Name extends string = string> {
  /** @default { delayMs: 5_000 } */
  readonly whenBusy?: WhenBusy | undefined;

  /** As in `acquire`: how long the lock is held after its process died. @default that of the Holdfast, 30_000 */
  readonly leaseMs?: number | undefined;

  /** As in `acquire`: a processor that runs for longer loses its lease. @default Infinity */
  readonly maxHoldMs?: number | undefined;

  /** Free text shown to whoever waits, at most 256 bytes. @default name of the queue and id of the job */
  readonly label?: string | undefined;

  /** The lock of a key, if it is no mutex: such as `(holdfast, name) => holdfast.semaphore(name, { permits: 3 })`. */
  readonly lock?: MakeLock | undefined;

  /** Told of each job that was not run, before it is delayed or fails: who is in the way, since when and why. */
  readonly onBusy?: ((refusal: Refusal, job: Job<Data, Result, Name>) => void) | undefined;
}

/** See `WhenBusy`. */
export interface Delaying {
  readonly delayMs: number;
  readonly delaysMax: number;
}

/** The options with their defaults, checked. */
export interface ResolvedWithLock<Data, Result, Name extends string>
  extends Omit<WithLockOptions<Data, Result, Name>, "whenBusy"> {
  readonly waitMs: number;
  readonly delaying: Delaying | undefined;
}

const DAY_MS = 86_400_000;

/** @throws TypeError, RangeError  a wrong option, by its name */
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
      // Checked just now.
      return { waitMs: 0, delaying: { delayMs: delayMs as number, delaysMax } };
    }
  }
  throw new TypeError(`whenBusy must be "fail", { waitMs } or { delayMs, delaysMax }; got ${show(whenBusy)}`);
}
