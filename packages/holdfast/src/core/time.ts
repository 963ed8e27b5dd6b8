/**
 * Moments, and how long a lease may be trusted: all arithmetic with clocks is here.
 *
 * Safety never depends on a timer. A holder compares both of its clocks at the call.
 */

import { onAbort } from "./options.js";
import type { Runtime, Timer } from "./runtime.js";

// --- How long a holder may trust its lease, by its own clocks.
//
// A lease of `leaseMs` is trusted from before the request that set it was sent, less an allowance for clocks
// that run at different speeds (1 % and 2 ms, the rule of the Redlock description), and it is over as soon as
// either the monotonic or the wall clock says so: the first stands still in a suspended host, the second may
// be set back. So it is over here before it is over on the server, as long as the clocks' rates differ by
// less than the allowance.

/** One moment, read from both clocks. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Reads both clocks. */
export function now(runtime: Runtime): Moment {
  return { monotonicMs: runtime.monotonicMs(), wallMs: runtime.wallMs() };
}

/** How much two clocks may drift apart, as a share of the time that passed. */
export const DRIFT_RATE = 0.01;

/** The moment up to which a lease may be trusted that was set, at the earliest, at `setAt`. */
export function validUntil(setAt: Moment, leaseMs: number): Moment {
  const trustedMs = leaseMs - (leaseMs * DRIFT_RATE + 2);
  return { monotonicMs: setAt.monotonicMs + trustedMs, wallMs: setAt.wallMs + trustedMs };
}

/** What is left until `moment`, by whichever clock says less; 0 when it is over. In ms. */
export function msUntil(moment: Moment, runtime: Runtime): number {
  return msFrom(now(runtime), moment);
}

/** As `msUntil`, for clocks that have been read already. */
export function msFrom(at: Moment, moment: Moment): number {
  return Math.max(0, Math.min(moment.monotonicMs - at.monotonicMs, moment.wallMs - at.wallMs));
}

/**
 * The one of two moments that is further off, by the clocks as they stand at `at`.
 *
 * Not the later clock by clock: after the wall clock was set back, a moment from before would stand too far in
 * the future, and a host that is then suspended would not notice that its lease is over.
 */
export function later(a: Moment, b: Moment, at: Moment): Moment {
  return msFrom(at, a) > msFrom(at, b) ? a : b;
}

/** What a waiter knows of the server's clock: it showed `serverUs` at some time after `sentAt`. */
export interface ClockSample {
  readonly sentAt: Moment;
  readonly serverUs: number;
}

/**
 * The earliest moment at which the server can have made a grant that it dates `grantedAtUs`.
 *
 * The grant itself travels for an unknown time, so the moment of its arrival proves nothing. The server's own
 * clock tells how long after the sample it was made; the drift allowance is taken off that too. A server whose
 * clock was set forward in between would have cut the lease short by as much (assumption A2 of docs/safety.md).
 */
export function earliestGrant(sample: ClockSample, grantedAtUs: number, receivedAt: Moment): Moment {
  const elapsedMs = Math.max(0, (grantedAtUs - sample.serverUs) / 1_000) * (1 - DRIFT_RATE);
  return {
    monotonicMs: Math.min(sample.sentAt.monotonicMs + elapsedMs, receivedAt.monotonicMs),
    wallMs: Math.min(sample.sentAt.wallMs + elapsedMs, receivedAt.wallMs),
  };
}

/**
 * When a claim can have been granted at the earliest, from what its waiter knows of the server's clock.
 *
 * One for each claim on its way.
 */
export class GrantMoment {
  readonly #runtime: Runtime;
  #sample: ClockSample | undefined;
  #firstSentAt: Moment | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether the server has said that the claim waits. */
  get isKnownToWait(): boolean {
    return this.#sample !== undefined;
  }

  /** A request is sent now. */
  sent(): Moment {
    const sentAt = now(this.#runtime);
    this.#firstSentAt ??= sentAt;
    return sentAt;
  }

  /** It was answered that the claim waits, when the server's clock said `serverUs`. */
  waits(sentAt: Moment, serverUs: number): void {
    this.#sample = { sentAt, serverUs };
  }

  /**
   * The moment of a grant whose message has come, made at `grantedAtUs` of the server's clock; undefined if the server had
   * better be asked: the grant is older than an answer "you wait", so it is over, or its lease has half run out.
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
 * How long a hold may be trusted, and what the server was asked for. Validity is computed from the clocks at the call.
 *
 * One for each hold.
 */
export class Term {
  /** Time of the grant by the wall clock, in ms since 1970. */
  readonly sinceAtMs: number;
  /** Length of the lease that a renewal asks for, in ms. */
  leaseMs: number;
  readonly #runtime: Runtime;
  readonly #sinceMs: number;
  #validUntil: Moment;
  #longestMs = 0;

  /**
   * @param setAt      the earliest moment at which the server can have begun it
   * @param grantedMs  how long the server has granted it for; as long as renewals ask for, unless it is provisional
   */
  constructor(runtime: Runtime, setAt: Moment, leaseMs: number, grantedMs: number = leaseMs) {
    this.#runtime = runtime;
    this.leaseMs = leaseMs;
    this.sinceAtMs = runtime.wallMs();
    this.#sinceMs = runtime.monotonicMs();
    this.#validUntil = validUntil(setAt, grantedMs);
  }

  /** The longest lease that the server was asked for since the grant; 0 if nothing was asked. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** What is left of it, in ms; 0 when it is over. */
  leftMs(at: Moment = now(this.#runtime)): number {
    return msFrom(at, this.#validUntil);
  }

  /** How long it has lasted, in ms. */
  heldMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return nowMs - this.#sinceMs;
  }

  /** The server is asked for more. */
  asked(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /** It said yes, at `at`, to a request by which the lease may be trusted until `until`. */
  extended(until: Moment, at: Moment): void {
    this.#validUntil = later(this.#validUntil, until, at);
  }
}

/** Which of the two ended it. */
export type DeadlineEnd = "deadline" | "abort";

/** Any: it does nothing when it fires but begin anew. */
const STAY_MS = 60_000;

/**
 * How long a caller waits: until its deadline, or until its signal aborts. The rule is the same alone and in a cohort.
 *
 * It keeps the process alive while its deadline runs.
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

  /** @param onEnd  called at most once for each of the two, and not after `stop` */
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
  waitedMs(): number {
    return this.#runtime.monotonicMs() - this.startedAt.monotonicMs;
  }

  /** What is left of `waitMs`; negative when it is over. */
  leftMs(): number {
    return this.#waitMs === Infinity ? Infinity : this.#waitMs - this.waitedMs();
  }

  /**
   * From now on the deadline ends the wait. Most acquires are over before it matters, so a timer is not set at once.
   *
   * @param leastMs  until it is called again without: the wait lasts so long from now in any case
   */
  start(leastMs = 0): void {
    if (this.#isExact || this.#waitMs === Infinity) return;
    this.#isExact = leastMs === 0;
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.#onEnd("deadline"), Math.max(leastMs, this.leftMs()), true);
  }

  /** As `start`; and who has no deadline keeps the process alive too, where no request of its own does. */
  stay(): void {
    if (this.#waitMs < Infinity) {
      this.start();
      return;
    }
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.stay(), STAY_MS, true);
  }

  /** The wait is over. */
  stop(): void {
    this.#timer?.cancel();
    this.#stopListening?.();
  }
}
