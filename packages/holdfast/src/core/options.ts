/**
 * Acquire options, their defaults and their checks. Holdfast rejects invalid values and never corrects them.
 */
import { checkLabel, show, unknownOption } from "./keys.js";

/** The order in which callers are served. See `AcquireOptions.fairness`. */
export type Fairness = "cohort" | "strict";

/** Options of `tryAcquire`. */
export interface TryAcquireOptions {
  /**
   * Length of the lease on the server. A longer lease survives longer pauses of the holder and more failed renewals. A
   * shorter lease frees the lock sooner after a crash. Whole milliseconds, 100 to 31,536,000,000 (a year).
   * @default 30_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Whether Holdfast renews the lease every third of `leaseMs` while it is held. If false, the lease ends `leaseMs`
   * after the grant, unless you call `extend`.
   * @default true
   */
  readonly renew?: boolean | undefined;

  /**
   * Maximum time to hold the lock. After that, the lease counts as lost and is no longer renewed. A smaller value ends
   * the hold of a hung holder sooner. Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /** Free text, shown by inspections and in waiters' error messages. At most 256 bytes. */
  readonly label?: string | undefined;
}

/** Options of `acquire` and `run`. */
export interface AcquireOptions extends TryAcquireOptions {
  /**
   * Maximum time to wait. A longer wait tolerates more contention; a shorter one fails sooner. 0 makes one attempt;
   * Infinity never gives up. Milliseconds, 0 or more.
   * @default 10_000
   */
  readonly waitMs?: number | undefined;

  /**
   * Aborting the signal ends the wait: the call rejects with the signal's reason. An abort never releases a held lock.
   */
  readonly signal?: AbortSignal | undefined;

  /**
   * The order in which callers are served. For mutexes and reentrant mutexes only; all other kinds are strict.
   *
   * - `"strict"`: first come, first served across all processes
   * - `"cohort"`: callers of one process with the same `leaseMs`, `label` and `throughPause` share one place in the
   *   queue. When their turn comes, they hold the lock one after the other without round trips. A turn serves at most
   *   32 callers, or 128 if many are waiting, and starts no further hold after 20 ms. Then the next process is served.
   *   This is faster under load.
   *
   * In both modes, every waiter in the queue is served eventually. A client that cannot subscribe has no place in the
   * queue, and may wait indefinitely for a busy lock.
   * @default "cohort"
   */
  readonly fairness?: Fairness | undefined;

  /**
   * Whether to wait while the lock is paused, for at most `waitMs`. If false, the call rejects with PausedError
   * immediately, because a pause may last for days. Callers that queued before the pause keep their places in any case.
   * @default false
   */
  readonly throughPause?: boolean | undefined;
}

/** Options of `run`: those of `acquire`, and how the lock is released when the work has ended. */
export interface RunOptions extends AcquireOptions {
  /**
   * When `run` settles after its work has ended.
   *
   * - `"awaited"`: when the server has confirmed the release, or Holdfast stops waiting for the confirmation
   * - `"background"`: immediately, which saves one round trip. If the process ends before it has sent the release, the
   *   lock stays taken until the lease expires. If the lease has ended when the work returns, `run` awaits the release
   *   anyway, because only the server knows whether another client got the lock. `close` waits for background releases.
   * @default "awaited"
   */
  readonly release?: "awaited" | "background" | undefined;

  /**
   * Called if the release fails, unless `run` rejects with that error.
   *
   * - StoreError: it is unknown whether the server has released the lock
   * - LeaseLostError (only if `release` is `"background"` or the work threw): the server had already lost the lease
   *
   * Errors that the callback throws are ignored.
   */
  readonly onReleaseError?: ((error: unknown) => void) | undefined;
}

/**
 * Marks options that `run` passes to `acquire`, so that `acquire` accepts the options of `run` too. Copies of the
 * options keep the mark.
 */
export const OF_RUN: unique symbol = Symbol("of run");
const RUN_OPTIONS: readonly string[] = ["release", "onReleaseError"];

/** The defaults of all options. */
export const DEFAULTS: Readonly<{
  leaseMs: number;
  renew: boolean;
  maxHoldMs: number;
  label: string;
  waitMs: number;
  fairness: Fairness;
  throughPause: boolean;
}> = Object.freeze({
  leaseMs: 30_000,
  renew: true,
  maxHoldMs: Infinity,
  label: "",
  waitMs: 10_000,
  fairness: "cohort",
  throughPause: false,
});

/** `AcquireOptions` with defaults filled in. */
export type ResolvedOptions = typeof DEFAULTS & {
  readonly signal: AbortSignal | undefined;
  /** The amount that the claim requests; see `Claim`. Set by the kind, not by the caller. */
  readonly amount: number;
};

const LEASE_MIN_MS = 100;
/** Longest lease: one year. The limit catches mistakes, and keeps the expiry in the range that the server accepts. */
const LEASE_MAX_MS = 31_536_000_000;

const CHECKS: Readonly<Record<string, (value: unknown) => void>> = {
  leaseMs: checkLeaseMs,
  renew: (value) => checkOneOf("renew", value, true, false),
  maxHoldMs(value) {
    if (value !== Infinity) checkWhole("maxHoldMs", value, LEASE_MIN_MS, LEASE_MAX_MS, " or Infinity");
  },
  label: checkLabel,
  waitMs(value) {
    if (typeof value !== "number")
      throw new TypeError(`waitMs must be a number of milliseconds, 0 or more; got ${show(value)}`);
    if (!(value >= 0)) throw new RangeError(`waitMs must be 0 or more, or Infinity; got ${value}`);
  },
  signal(value) {
    if (!isAbortSignal(value)) throw new TypeError(`signal must be an AbortSignal; got ${show(value)}`);
  },
  fairness: (value) => checkOneOf("fairness", value, "cohort", "strict"),
  throughPause: (value) => checkOneOf("throughPause", value, true, false),
  release: (value) => checkOneOf("release", value, "awaited", "background"),
  onReleaseError(value) {
    if (typeof value !== "function") throw new TypeError(`onReleaseError must be a function; got ${show(value)}`);
  },
};

/** Names of the options of `acquire` that `createHoldfast` accepts as defaults. */
export const DEFAULTABLE: readonly string[] = Object.keys(DEFAULTS);

/** Names of the options that every `acquire` accepts. */
export const ACQUIRE_OPTIONS: readonly string[] = Object.keys(CHECKS).filter((option) => !RUN_OPTIONS.includes(option));

/**
 * Checks the given options and fills in the rest from `defaults`.
 *
 * @param names  the options that the method accepts, including those that it has already removed from `options`
 * @throws TypeError, RangeError  an option does not exist or has a wrong value
 */
export function resolve(
  options: AcquireOptions,
  defaults: ResolvedOptions,
  names: readonly string[] = ACQUIRE_OPTIONS,
): ResolvedOptions {
  if (options === NONE) return defaults;
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
  const known = OF_RUN in options ? [...names, ...RUN_OPTIONS] : names;
  const resolved: Record<string, unknown> = { ...defaults };
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const check = known.includes(option) && Object.hasOwn(CHECKS, option) ? CHECKS[option] : undefined;
    if (check === undefined) {
      throw unknownOption(option, known);
    }
    check(value);
    resolved[option] = option === "signal" ? nativeSignal(value as AbortSignal) : value;
  }
  // `defaults` has every key of ResolvedOptions, and each value has passed its check.
  return resolved as ResolvedOptions;
}

/** The options of a call without options. `resolve` recognizes this object and returns the defaults unchecked. */
export const NONE: AcquireOptions = Object.freeze({});

/** Checks the length of a lease. @throws TypeError, RangeError  not a whole number from 100 to 31,536,000,000 */
export function checkLeaseMs(leaseMs: unknown): void {
  checkWhole("leaseMs", leaseMs, LEASE_MIN_MS, LEASE_MAX_MS);
}

/** Checks an option that accepts only a few values. @throws TypeError  `value` is not one of them */
export function checkOneOf(option: string, value: unknown, ...values: readonly unknown[]): void {
  if (values.includes(value)) return;
  const others = values.map(show);
  const last = others.pop();
  throw new TypeError(`${option} must be ${others.join(", ")} or ${last}; got ${show(value)}`);
}

/**
 * Checks a whole number.
 *
 * @param or  text for the error message that names other valid values
 * @throws TypeError, RangeError  not a whole number from `min` to `max`
 */
export function checkWhole(option: string, value: unknown, min: number, max: number, or = ""): void {
  const range = `a whole number from ${min} to ${max}${or}`;
  if (typeof value !== "number") throw new TypeError(`${option} must be ${range}; got ${show(value)}`);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${option} must be ${range}; got ${value}`);
  }
}

/** `Options` with defaults filled in, so that no option is undefined. */
export type Filled<Options> = { [Option in keyof Options]-?: Exclude<Options[Option], undefined> };

// --- Abort signals. All waits on one signal share one listener, because Node warns of a leak if a signal has more than
// ten listeners, and callers often share one signal.

/**
 * Returns whether a value is accepted as `signal`. The value need not be an instance of this realm's AbortSignal,
 * because signals from another realm or a polyfill are not.
 */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (value instanceof AbortSignal) return true;
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

const natives = new WeakMap<AbortSignal, AbortSignal>();

/**
 * Returns the signal if it is an AbortSignal of this realm. Otherwise, returns an AbortSignal of this realm that aborts
 * when the given signal does.
 */
export function nativeSignal(signal: AbortSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const known = natives.get(signal);
  if (known !== undefined) return known;
  const foreign: AbortSignal = signal;
  const controller = new AbortController();
  // A polyfilled signal may have no reason. The new signal's reason is then an AbortError, which is Node's default.
  const abort = (): void => controller.abort(foreign.reason);
  if (foreign.aborted) abort();
  else foreign.addEventListener("abort", abort, { once: true });
  natives.set(foreign, controller.signal);
  return controller.signal;
}

interface Shared {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const shared = new WeakMap<AbortSignal, Shared>();

/**
 * Calls `callback` when the signal aborts: at most once, and never if the signal has already aborted.
 *
 * @returns a function that removes the callback; calling it again does nothing
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  // A new function, because a set would store the same callback only once.
  const entry = (): void => callback();
  const { callbacks } = shared.get(signal) ?? listenTo(signal);
  callbacks.add(entry);
  return () => {
    // This works even while the signal aborts: a callback removed by an earlier callback is not called.
    if (!callbacks.delete(entry) || callbacks.size > 0) return;
    const present = shared.get(signal);
    if (present?.callbacks !== callbacks) return;
    shared.delete(signal);
    signal.removeEventListener("abort", present.listener);
  };
}

function listenTo(signal: AbortSignal): Shared {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    shared.delete(signal);
    for (const callback of callbacks) {
      try {
        callback();
      } catch (error) {
        // Do what Node does when a listener throws: call the other callbacks, and report an uncaught exception.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  };
  const created = { callbacks, listener };
  shared.set(signal, created);
  signal.addEventListener("abort", listener, { once: true });
  return created;
}
