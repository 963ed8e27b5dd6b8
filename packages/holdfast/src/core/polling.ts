/**
 * When a waiter asks again by itself, and what it knows of the server meanwhile.
 */

import { asUncertain, StoreError } from "./errors.js";
import type { Runtime, Timer } from "./runtime.js";

/** A deadline that is nearer than this does not make a call give up sooner: it would fail on any hiccup. */
export const SHORTEST_CALL_MS = 200;

/** The present lease must be over on the server too when a waiter asks at its end. */
const AFTER_LEASE_MS = 5;
/** As long as a server is quiet it is asked this often, in case another one has taken its place. */
const QUIET_MS = 5_000;
/** Before jitter, which takes off up to a half: nobody asks sooner than after 10 ms. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/**
 * When a waiter asks again by itself. A waiter in the queue asks in case a message was lost: when the present lease must be
 * over, and every 3 s. A waiter that cannot queue, or gets no messages, asks with growing pauses.
 *
 * One timer, which keeps the process alive.
 */
export class Polling {
  readonly #runtime: Runtime;
  readonly #ask: () => void;
  #timer: Timer | undefined;
  #pollMs = POLL_MIN_MS;

  constructor(runtime: Runtime, ask: () => void) {
    this.#runtime = runtime;
    this.#ask = ask;
  }

  /** In the queue, behind a lease that is over in `restMs`, or that has no end if that is negative; after `mostMs` in any case. */
  queued(restMs: number, mostMs: number): void {
    const jitterMs = this.#runtime.random() * 20;
    const leaseEndMs = restMs < 0 ? Infinity : restMs + AFTER_LEASE_MS + jitterMs;
    this.in(Math.min(leaseEndMs, mostMs + jitterMs));
  }

  /** Outside of the queue, or in the queue of a client that gets no messages: later each time. */
  poll(): void {
    this.in(this.#pollMs * (0.5 + this.#runtime.random() / 2));
    this.#pollMs = Math.min(this.#pollMs * 2, POLL_MAX_MS);
  }

  /** The server may not grant before `restMs` have passed; or somewhat later, if others tell it of longer leases. */
  quiet(restMs: number): void {
    this.in(Math.min(restMs, QUIET_MS) + this.#runtime.random() * 20);
  }

  /** In place of what was planned before. */
  in(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(this.#ask, delayMs, true);
  }

  /** Nothing is planned any more. */
  cancel(): void {
    this.#timer?.cancel();
  }
}

/**
 * What a waiter does not know: whether a request of its claim has run, and since when the server has not answered.
 *
 * One for each claim on its way.
 */
export class UncertainReply {
  /** True if a request may have queued this claim, or been granted, without our knowing. */
  isUncertain = false;
  #failingSinceMs: number | undefined;
  #last: StoreError | undefined;

  /** The failure that goes on; undefined while the server answers. */
  get last(): StoreError | undefined {
    return this.#failingSinceMs === undefined ? undefined : this.#last;
  }

  /** The server has answered. */
  answered(): void {
    this.#failingSinceMs = undefined;
  }

  /** A request has failed. */
  failed(error: unknown): void {
    if (error instanceof StoreError && error.mayHaveRun) this.isUncertain = true;
  }

  /** The wait goes on in spite of a failure. */
  goesOn(error: StoreError): void {
    this.#last = error;
  }

  /** How long the server has not answered by now, in ms: 0 at the first failure. */
  failingMs(nowMs: number): number {
    this.#failingSinceMs ??= nowMs;
    return nowMs - this.#failingSinceMs;
  }

  /**
   * What to tell of a failure: the last try may be known not to have run, but what matters is whether any of them may
   * have, or stands in the queue.
   */
  told(error: unknown, isQueued: boolean, lockName: string): unknown {
    const isInDoubt = this.isUncertain || isQueued;
    return error instanceof StoreError && isInDoubt ? asUncertain(error, lockName) : error;
  }
}
