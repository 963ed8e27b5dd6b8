/**
 * Schedules the requests of a waiter, and tracks whether a request without a reply may have run.
 */

import { asUncertain, StoreError } from "./errors.js";
import type { Runtime, Timer } from "./runtime.js";

/**
 * Shortest timeout of a call, in ms, even if the deadline is nearer. A shorter timeout would expire on any small delay.
 */
export const SHORTEST_CALL_MS = 200;

/**
 * Delay in ms between the end of the current lease and the waiter's request, so that the lease is over on the server
 * too.
 */
const AFTER_LEASE_MS = 5;
/**
 * Longest interval between requests to a server that is not granting locks yet, in ms. The waiter keeps asking because
 * another server may take over.
 */
const QUIET_MS = 5_000;
/** First polling delay, in ms. Jitter subtracts up to half, so a waiter asks after 10 ms at the earliest. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/**
 * Schedules the next request of a waiter. A waiter in the queue asks again when the current lease is due to end, and at
 * least every 3 s in case a message was lost. A waiter that cannot queue, or gets no messages, asks with growing
 * delays.
 *
 * Uses one timer, which keeps the process alive.
 */
export class Polling {
  readonly #runtime: Runtime;
  readonly #ask: () => void;
  #timer: Timer | undefined;
  #pollMs = POLL_MIN_MS;

  /** @param ask  sends the next request */
  constructor(runtime: Runtime, ask: () => void) {
    this.#runtime = runtime;
    this.#ask = ask;
  }

  /**
   * Schedules the next request of a waiter in the queue.
   *
   * @param restMs  remaining time of the current lease, in ms; negative if it has no end
   * @param mostMs  longest delay, in ms, before jitter is added
   */
  queued(restMs: number, mostMs: number): void {
    const jitterMs = this.#runtime.random() * 20;
    const leaseEndMs = restMs < 0 ? Infinity : restMs + AFTER_LEASE_MS + jitterMs;
    this.in(Math.min(leaseEndMs, mostMs + jitterMs));
  }

  /** Schedules the next request of a waiter that is not in the queue or gets no messages. The delay grows each time. */
  poll(): void {
    this.in(this.#pollMs * (0.5 + this.#runtime.random() / 2));
    this.#pollMs = Math.min(this.#pollMs * 2, POLL_MAX_MS);
  }

  /**
   * Schedules the next request to a server that grants nothing for another `restMs`. That time may grow if other
   * clients report longer leases to the server, so the next request may still be too early.
   */
  quiet(restMs: number): void {
    this.in(Math.min(restMs, QUIET_MS) + this.#runtime.random() * 20);
  }

  /** Schedules the next request in `delayMs`, and cancels any request that was already scheduled. */
  in(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(this.#ask, delayMs, true);
  }

  /** Cancels the scheduled request. */
  cancel(): void {
    this.#timer?.cancel();
  }
}

/**
 * Tracks failed requests of one claim: whether any of them may have run, and how long the server has failed to reply.
 */
export class UncertainReply {
  /** True if a failed request may have queued or granted this claim on the server. */
  isUncertain = false;
  #failingSinceMs: number | undefined;
  #last: StoreError | undefined;

  /** The latest error of the ongoing failure; undefined while the server replies. */
  get last(): StoreError | undefined {
    return this.#failingSinceMs === undefined ? undefined : this.#last;
  }

  /** Called when the server has replied. */
  answered(): void {
    this.#failingSinceMs = undefined;
  }

  /** Called when a request has failed. */
  failed(error: unknown): void {
    if (error instanceof StoreError && error.mayHaveRun) this.isUncertain = true;
  }

  /** Called when the wait continues despite an error. */
  goesOn(error: StoreError): void {
    this.#last = error;
  }

  /** Returns how long the server has failed to reply, in ms; 0 at the first failure. */
  failingMs(nowMs: number): number {
    this.#failingSinceMs ??= nowMs;
    return nowMs - this.#failingSinceMs;
  }

  /**
   * Returns the error for the caller. The error is marked as uncertain if the claim is in the queue or an earlier
   * request may have run, even if the last request certainly has not.
   */
  errorFor(error: unknown, isQueued: boolean, lockName: string): unknown {
    const isInDoubt = this.isUncertain || isQueued;
    return error instanceof StoreError && isInDoubt ? asUncertain(error, lockName) : error;
  }
}
