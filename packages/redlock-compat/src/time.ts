/** Timers of any length, and how long a lock is valid. */

/** Longest delay that Node's timers accept, in ms. A longer one would fire immediately. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** Calls `callback` after `delayMs`, which may be of any length. Returns a function that cancels it. */
export function after(delayMs: number, callback: () => void): () => void {
  let cancel = (): void => {};
  const wait = (leftMs: number): void => {
    const now = Math.min(leftMs, LONGEST_TIMER_MS);
    const timer = setTimeout(() => (leftMs > now ? wait(leftMs - now) : callback()), Math.max(0, now));
    cancel = () => clearTimeout(timer);
  };
  wait(delayMs);
  return () => cancel();
}

/**
 * The end of a lock's validity, on two clocks, because the wall clock can be set back, and the monotonic clock can stop
 * while the host is suspended.
 */
export interface Deadline {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * The deadline of a lock that is requested now.
 *
 * @param driftFactor  the fraction of the duration by which clocks may differ; 2 ms are added for the precision of
 * expiries
 */
export function deadlineOf(durationMs: number, driftFactor: number): Deadline {
  const trustedMs = durationMs - (Math.round(driftFactor * durationMs) + 2);
  return { monotonicMs: performance.now() + trustedMs, wallMs: Date.now() + trustedMs };
}

/** The time left until a deadline, in ms, on the clock that shows less. Negative after the deadline. */
export function msLeft({ monotonicMs, wallMs }: Deadline): number {
  return Math.min(monotonicMs - performance.now(), wallMs - Date.now());
}
