/**
 * When each waiter polls: at the end of the lease that the server last reported to it, and at least every 3 s.
 *
 * This bounds the wait behind a crashed holder. The waiter that polls first finds that the lease has ended and makes
 * the server grant the head of the queue, so the lock is granted no later than any waiter's next poll.
 */
import { labelIn } from "./owners.js";

/** The longest polling interval, including jitter. */
const POLL_MS = 3_020;
/** The longest delay of a poll after the end of a lease, including jitter and timer rounding. */
const AFTER_LEASE_MS = 26;
/** The combined factor of a slow clock and a late timer. */
const SLOWEST = 1.0092;
const TIMER_LATE_MS = 3;
/**
 * The time for a reply, a request and the message of a grant, at most 10 ms each, and a further request after a slow
 * grant.
 */
const TRIPS_MS = 50;
/** A new waiter first opens its inbox and then polls again. */
const COMING_MS = 80;

interface Told {
  readonly atMs: number;
  readonly restMs: number;
}

/** Predicts the polls of waiters. */
export class Asks {
  readonly #told = new Map<string, Told[]>();

  /** Records that the server reported `restMs` until the holder's lease ends; negative if it does not end. */
  told(owner: string, atMs: number, restMs: number): void {
    const key = labelIn(owner);
    const known = this.#told.get(key);
    if (known === undefined) this.#told.set(key, [{ atMs, restMs }]);
    else known.push({ atMs, restMs });
  }

  /**
   * The latest time at which some waiter is granted a lock that is free from `freeMs` on, because this waiter polls;
   * on a network without faults.
   */
  servedBy(owner: string, callMs: number, freeMs: number): number {
    const last = this.#told.get(labelIn(owner))?.findLast(({ atMs }) => atMs >= callMs && atMs <= freeMs);
    if (last === undefined) return Math.max(callMs, freeMs) + COMING_MS + TRIPS_MS;
    const { atMs, restMs } = last;
    const againMs = Math.min(restMs < 0 ? Number.POSITIVE_INFINITY : restMs + AFTER_LEASE_MS, POLL_MS);
    return Math.max(atMs + againMs * SLOWEST, freeMs + AFTER_LEASE_MS * SLOWEST) + TIMER_LATE_MS + TRIPS_MS;
  }
}
