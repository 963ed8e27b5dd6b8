/**
 * When each waiter asks again: at the end of the lease that it was last told of, and every 3 s in any case.
 *
 * That is what bounds a wait behind a holder that died. The waiter that asks first finds the lease over and has the
 * head of the queue granted, so the lock is given no later than any one waiter asks.
 */
import { labelIn } from "./owners.js";

/** A waiter asks this often in any case, with the most that its jitter adds. */
const POLL_MS = 3_020;
/** When a waiter asks after the end of a lease, with the most that its jitter adds, and what a timer rounds up. */
const AFTER_LEASE_MS = 26;
/** How slow a clock may be, and how late a timer. */
const SLOWEST = 1.0092;
const TIMER_LATE_MS = 3;
/** An answer, a question, and the message of a grant, each of 10 ms at most; and a question about a grant that was slow. */
const TRIPS_MS = 50;
/** Who has just come opens its inbox first, and asks again then. */
const COMING_MS = 80;

interface Told {
  readonly atMs: number;
  readonly restMs: number;
}

/** See the file header. */
export class Asks {
  readonly #told = new Map<string, Told[]>();

  /** The server has told a waiter that the lease of the holder has `restMs` left, or no end if that is negative. */
  told(owner: string, atMs: number, restMs: number): void {
    const key = labelIn(owner);
    const known = this.#told.get(key);
    if (known === undefined) this.#told.set(key, [{ atMs, restMs }]);
    else known.push({ atMs, restMs });
  }

  /**
   * When at the latest somebody is granted a lease that is free from `freeMs` on, because this waiter asks for it;
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
