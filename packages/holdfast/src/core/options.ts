/**
 * Options of callers: what is accepted, the defaults, and the error for anything else.
 */
import { checkLabel, show, unknownOption } from "./keys.js";

// --- What a caller may ask for, its defaults, and the checks: once, at the door. A wrong value is refused, never corrected.

/** How claims of several callers follow each other. See `AcquireOptions.fairness`. */
export type Fairness = "cohort" | "strict";

/** How to acquire without waiting. */
export interface TryAcquireOptions {
  /**
   * Length of the lease on the server. Longer rides out longer pauses of the holder and leaves more spare
   * renewals; shorter frees the lock sooner after a crash. Whole milliseconds, 100 to 31,536,000,000 (a year).
   * @default 30_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Whether the lease is renewed, every third of `leaseMs`, for as long as it is held. With false it ends
   * `leaseMs` after it was granted, unless `extend` is called; a claim that several callers share was granted a little
   * before the lease of the last of them began.
   * @default true
   */
  readonly renew?: boolean | undefined;

  /**
   * Longest hold in spite of renewal: then the lease counts as lost and is no longer renewed. Shorter cuts a
   * hung holder off sooner. Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /** Free text shown to whoever waits for the lock or inspects it, at most 256 bytes. */
  readonly label?: string | undefined;
}

/** How to acquire, and how long to try. */
export interface AcquireOptions extends TryAcquireOptions {
  /**
   * Longest wait. Longer rides out more contention; shorter fails sooner; 0 makes one attempt, Infinity never
   * gives up. Milliseconds, 0 or more.
   * @default 10_000
   */
  readonly waitMs?: number | undefined;

  /** Ends the wait, and rejects with the signal's reason; never ends a hold. */
  readonly signal?: AbortSignal | undefined;

  /**
   * Of a mutex or reentrant mutex; others are always served strictly. `"strict"` serves callers first come, first served
   * across all processes. With `"cohort"` callers of one process, with the same `leaseMs` and `label`, wait with one place
   * in the queue; when it is granted those who were waiting follow each other without a round trip, 32 at most (128 after a full
   * batch) and for 20 ms at most, before another process is served: faster under load. With either, every waiter in the queue
   * is served in the end, as long as holders release and messages reach it. A client that cannot subscribe stands in no queue,
   * and may wait without limit on a busy lock.
   * @default "cohort"
   */
  readonly fairness?: Fairness | undefined;

  /**
   * Whether to wait while somebody has paused the lock, for `waitMs` at most. With false it rejects with PausedError at once,
   * since a person may take days; whoever stood in the queue before the pause began keeps its place all the same.
   * @default false
   */
  readonly throughPause?: boolean | undefined;
}

/** Every default, in one place. */
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

/** What `AcquireOptions` come to when defaults are filled in. */
export type ResolvedOptions = typeof DEFAULTS & {
  readonly signal: AbortSignal | undefined;
  /** What the claim asks for; see `Claim`. Set by the kind, not by the caller. */
  readonly amount: number;
};

const LEASE_MIN_MS = 100;
/** Beyond a year a lease is a leak; the bound also keeps the server from refusing the expiry. */
const LEASE_MAX_MS = 31_536_000_000;

const CHECKS: Readonly<Record<string, (value: unknown) => void>> = {
  leaseMs: checkLeaseMs,
  renew(value) {
    if (typeof value !== "boolean") throw new TypeError(`renew must be true or false; got ${show(value)}`);
  },
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
  fairness(value) {
    if (value !== "cohort" && value !== "strict") {
      throw new TypeError(`fairness must be "cohort" or "strict"; got ${show(value)}`);
    }
  },
  throughPause(value) {
    if (typeof value !== "boolean") throw new TypeError(`throughPause must be true or false; got ${show(value)}`);
  },
};

/** Names of the options of `acquire` that `createHoldfast` takes as defaults. */
export const DEFAULTABLE: readonly string[] = Object.keys(DEFAULTS);

/** Names of the options of every `acquire`. */
export const ACQUIRE_OPTIONS: readonly string[] = Object.keys(CHECKS);

/**
 * Checks the given options and fills in the rest from `defaults`.
 *
 * @param names  what the verb takes, with those options of its own that it has taken out already
 * @throws TypeError, RangeError  an option that does not exist or has a wrong value; the message names both
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
  const resolved: Record<string, unknown> = { ...defaults };
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const check = names.includes(option) && Object.hasOwn(CHECKS, option) ? CHECKS[option] : undefined;
    if (check === undefined) {
      throw unknownOption(option, names);
    }
    check(value);
    resolved[option] = option === "signal" ? nativeSignal(value as AbortSignal) : value;
  }
  // Every key of ResolvedOptions came from `defaults` and has passed its check.
  return resolved as ResolvedOptions;
}

/** Options of a call that gave none: the defaults need no second check. */
export const NONE: AcquireOptions = Object.freeze({});

/** @throws TypeError, RangeError  unless a lease can last that long */
export function checkLeaseMs(leaseMs: unknown): void {
  checkWhole("leaseMs", leaseMs, LEASE_MIN_MS, LEASE_MAX_MS);
}

/** @throws TypeError, RangeError  unless the value is a whole number of that range */
export function checkWhole(option: string, value: unknown, min: number, max: number, or = ""): void {
  const range = `a whole number from ${min} to ${max}${or}`;
  if (typeof value !== "number") throw new TypeError(`${option} must be ${range}; got ${show(value)}`);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${option} must be ${range}; got ${value}`);
  }
}

/** Options with a value for each: what their defaults were filled into. */
export type Filled<Options> = { [Option in keyof Options]-?: Exclude<Options[Option], undefined> };

// --- Abort signals of callers: what is accepted as one, and one listener for all who wait on it.
//
// Node warns of a leak when a signal has more than ten listeners, and callers often share one signal.

/** What a caller may pass as `signal`; those of another realm or of a polyfill are no instances of this realm's class. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (value instanceof AbortSignal) return true;
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

const natives = new WeakMap<AbortSignal, AbortSignal>();

/** The signal itself; for one that is no instance of this realm's class, an instance that aborts with it. */
export function nativeSignal(signal: AbortSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const known = natives.get(signal);
  if (known !== undefined) return known;
  const foreign: AbortSignal = signal;
  const controller = new AbortController();
  // Polyfills have no reason; then it is an AbortError, as with Node's own.
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
 * Calls `callback` when the signal aborts; at most once, and not if it has aborted before.
 *
 * @returns ends that; calling it again does nothing
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  // An object of its own, so that one callback can be given twice.
  const entry = (): void => callback();
  const { callbacks } = shared.get(signal) ?? listenTo(signal);
  callbacks.add(entry);
  return () => {
    // Also while it aborts: who is ended by another callback is not called any more.
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
        // As Node does with a listener of its own that throws: the others are called all the same.
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
