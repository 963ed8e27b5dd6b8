/**
 * How long a holder may trust its lease, by its own clocks.
 *
 * A lease of `leaseMs` is trusted from before the request that set it was sent, less an allowance for clocks
 * that run at different speeds (1 % and 2 ms, the rule of the Redlock description), and it is over as soon as
 * either the monotonic or the wall clock says so: the first stands still in a suspended host, the second may
 * be set back. So it is over here before it is over on the server, as long as the clocks' rates differ by
 * less than the allowance.
 */
import type { Runtime } from "./runtime.js";

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
