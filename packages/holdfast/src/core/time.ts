/**
 * All arithmetic with clocks: moments, and how long a holder may trust its lease.
 *
 * Safety never depends on a timer. A holder reads both of its clocks on each call.
 */

import { onAbort } from "./options.js";
import type { Runtime, Timer } from "./runtime.js";

// --- How long a holder may trust its lease, by its own clocks.
//
// A holder trusts its lease from just before the request for the lease was sent. The trusted time is `leaseMs` minus an
// allowance for clocks that run at different speeds: 1% plus 2 ms, as in the Redlock description. It ends as soon as
// either the monotonic clock or the wall clock says so, because the monotonic clock may stop on a suspended host and
// the wall clock may be set back. So the lease ends in this process before it ends on the server, as long as the clock
// rates differ by less than the allowance.

/** One moment on both clocks. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Reads both clocks. */
export function now(runtime: Runtime): Moment {
  return { monotonicMs: runtime.monotonicMs(), wallMs: runtime.wallMs() };
}

/** How much two clocks may drift apart, as a fraction of the elapsed time. */
export const DRIFT_RATE = 0.01;

/** The moment until which a lease of `leaseMs` may be trusted, if the server set it at `setAt` or later. */
export function validUntil(setAt: Moment, leaseMs: number): Moment {
  const trustedMs = leaseMs - (leaseMs * DRIFT_RATE + 2);
  return { monotonicMs: setAt.monotonicMs + trustedMs, wallMs: setAt.wallMs + trustedMs };
}

/** The time left until `moment`, in ms, by the clock that leaves less time; 0 if `moment` has passed. */
export function msUntil(moment: Moment, runtime: Runtime): number {
  return msFrom(now(runtime), moment);
}

/** Like `msUntil`, but uses the clock readings `at` instead of reading the clocks. */
export function msFrom(at: Moment, moment: Moment): number {
  return Math.max(0, Math.min(moment.monotonicMs - at.monotonicMs, moment.wallMs - at.wallMs));
}

/**
 * Returns the later of two moments, which is the one with more time left at `at`.
 *
 * Does not take the maximum of each clock separately. If the wall clock was set back, the wall time of an older
 * moment is too far in the future, and a host that is then suspended would not notice that its lease is over.
 */
export function later(a: Moment, b: Moment, at: Moment): Moment {
  return msFrom(at, a) > msFrom(at, b) ? a : b;
}

/** A reading of the server's clock: it showed `serverUs`, in µs since 1970, at some time after `sentAt`. */
export interface ClockSample {
  readonly sentAt: Moment;
  readonly serverUs: number;
}

/**
 * Returns the earliest moment at which the server could have made a grant with the server time `grantedAtUs`.
 *
 * The message with the grant is in transit for an unknown time, so its arrival proves nothing. The server's own clock
 * shows how long after the sample the grant was made. The drift allowance is subtracted from that time too. If the
 * server's clock was set forward in between, the lease ends that much earlier than computed (assumption A2 of
 * docs/safety.md).
 */
export function earliestGrant(sample: ClockSample, grantedAtUs: number, receivedAt: Moment): Moment {
  const elapsedMs = Math.max(0, (grantedAtUs - sample.serverUs) / 1_000) * (1 - DRIFT_RATE);
  return {
    monotonicMs: Math.min(sample.sentAt.monotonicMs + elapsedMs, receivedAt.monotonicMs),
    wallMs: Math.min(sample.sentAt.wallMs + elapsedMs, receivedAt.wallMs),
  };
}

/**
 * Computes the earliest moment at which a claim could have been granted, from what its waiter knows about the server's
 * clock.
 *
 * Each claim has one instance until it is granted.
 */
export class GrantMoment {
  readonly #runtime: Runtime;
  #sample: ClockSample | undefined;
  #firstSentAt: Moment | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether the server has replied that the claim is waiting. */
  get isKnownToWait(): boolean {
    return this.#sample !== undefined;
  }

  /** Records that a request is sent now. */
  sent(): Moment {
    const sentAt = now(this.#runtime);
    this.#firstSentAt ??= sentAt;
    return sentAt;
  }

  /** Records a reply that says that the claim is waiting. The server sent it when its clock showed `serverUs`. */
  waits(sentAt: Moment, serverUs: number): void {
    this.#sample = { sentAt, serverUs };
  }

  /**
   * Returns the earliest possible moment of a grant that arrived as a message with the server time `grantedAtUs`.
   *
   * Returns undefined if the caller should ask the server instead. That is necessary in two cases: the server has since
   * replied that the claim is waiting, so the grant is over; or less than half of the lease is left.
   */
  of(grantedAtUs: number, leaseMs: number): Moment | undefined {
    const receivedAt = now(this.#runtime);
    if (this.#sample !== undefined && grantedAtUs < this.#sample.serverUs) return undefined;
    const setAt =
      this.#sample === undefined
        ? (this.#firstSentAt ?? receivedAt)
        : earliestGrant(this.#sample, grantedAtUs, receivedAt);
    return msUntil(validUntil(setAt, leaseMs), this.#runtime) < leaseMs / 2 ? undefined : setAt;
  }
}

/**
 * Tracks how long a hold may be trusted, and the longest lease requested for it. Each call computes validity from the
 * clocks.
 *
 * Each hold has one instance.
 */
export class Validity {
  /** Time of the grant by the wall clock, in ms since 1970. */
  readonly sinceAtMs: number;
  /** Length of the lease that a renewal asks for, in ms. */
  leaseMs: number;
  readonly #runtime: Runtime;
  readonly #sinceMs: number;
  #validUntil: Moment;
  #longestMs = 0;

  /**
   * @param setAt      the earliest moment at which the server could have begun the lease
   * @param leaseMs    length of the lease that renewals ask for, in ms
   * @param grantedMs  length of the lease that the server has granted, in ms; shorter than `leaseMs` if the
   *                   grant is provisional
   * @param heldFrom   when the hold began, as this process saw it
   */
  constructor(runtime: Runtime, setAt: Moment, leaseMs: number, grantedMs: number, heldFrom: Moment) {
    this.#runtime = runtime;
    this.leaseMs = leaseMs;
    this.sinceAtMs = heldFrom.wallMs;
    this.#sinceMs = heldFrom.monotonicMs;
    this.#validUntil = validUntil(setAt, grantedMs);
  }

  /** The longest lease requested since the grant, in ms; 0 if none was requested. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** How much longer the hold may be trusted, in ms; 0 when it is over. */
  leftMs(at: Moment = now(this.#runtime)): number {
    return msFrom(at, this.#validUntil);
  }

  /** How long the hold has lasted, in ms. */
  heldMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return nowMs - this.#sinceMs;
  }

  /** Records that a lease of `leaseMs` is requested from the server. */
  asked(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /**
   * Records a renewal that was confirmed at `at`. The hold may now be trusted until `until`, or until the previous end
   * if that is later.
   */
  extended(until: Moment, at: Moment): void {
    this.#validUntil = later(this.#validUntil, until, at);
  }
}

/** What ended a wait: its deadline, or an abort of its signal. */
export type DeadlineEnd = "deadline" | "abort";

/** Delay of a timer that only keeps the process alive. Any value works, because the timer restarts itself. */
const STAY_MS = 60_000;

/**
 * How long a caller waits: until its deadline, or until its signal aborts. The rule is the same with and without a
 * local queue.
 *
 * A running deadline keeps the process alive.
 */
export class Deadline {
  readonly #runtime: Runtime;
  readonly #waitMs: number;
  readonly #onEnd: (end: DeadlineEnd) => void;
  /** When the wait began. */
  readonly startedAt: Moment;
  readonly #stopListening: (() => void) | undefined;
  #timer: Timer | undefined;
  #isExact = false;

  /** @param onEnd  called at most once for the deadline and at most once for the abort, and never after `stop` */
  constructor(
    runtime: Runtime,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal | undefined },
    onEnd: (end: DeadlineEnd) => void,
  ) {
    this.#runtime = runtime;
    this.#waitMs = waitMs;
    this.#onEnd = onEnd;
    this.startedAt = now(runtime);
    this.#stopListening = signal && onAbort(signal, () => onEnd("abort"));
  }

  /** How long the caller has waited, in ms. */
  waitedMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return nowMs - this.startedAt.monotonicMs;
  }

  /** The remaining part of `waitMs`, in ms; negative after the deadline, Infinity without one. */
  leftMs(): number {
    return this.#waitMs === Infinity ? Infinity : this.#waitMs - this.waitedMs();
  }

  /**
   * Starts the deadline's timer. The constructor does not start it, because most acquires end before they need it.
   *
   * @param leastMs  shortest time from now until the wait may end, in ms; applies until `start` is called again without
   *                 it
   */
  start(leastMs = 0): void {
    if (this.#isExact || this.#waitMs === Infinity) return;
    this.#isExact = leastMs === 0;
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.#onEnd("deadline"), Math.max(leastMs, this.leftMs()), true);
  }

  /**
   * Like `start`, but also keeps the process alive if there is no deadline. For callers that have no request in flight.
   */
  stay(): void {
    if (this.#waitMs < Infinity) {
      this.start();
      return;
    }
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.stay(), STAY_MS, true);
  }

  /** Ends the deadline: cancels the timer and stops observing the signal. */
  stop(): void {
    this.#timer?.cancel();
    this.#stopListening?.();
  }
}
