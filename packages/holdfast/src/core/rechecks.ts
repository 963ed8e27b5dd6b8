/**
 * When a waiter asks again by itself. A waiter in the queue asks in case a message was lost: when the present lease must be
 * over, and every 3 s. A waiter that cannot queue, or gets no messages, asks with growing pauses.
 */
import type { Runtime, Timer } from "./runtime.js";

/** The present lease must be over on the server too when a waiter asks at its end. */
const AFTER_LEASE_MS = 5;
/** As long as a server is quiet it is asked this often, in case another one has taken its place. */
const QUIET_MS = 5_000;
/** Before jitter, which takes off up to a half: nobody asks sooner than after 10 ms. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/** See the file header. One timer, which keeps the process alive. */
export class Rechecks {
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
