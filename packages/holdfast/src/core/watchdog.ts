/**
 * Timers that all leases of one session share, so that a lease rarely needs a timer of its own.
 */
import { Registry } from "./inbox.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import { type Moment, now } from "./time.js";

/**
 * Maximum delay until an expired lease is noticed while the process runs, in ms. The documentation of `Lease` promises
 * this.
 */
export const CHECK_MS = 1_000;

/**
 * With at least this many watched leases, leases that are due are renewed in bulk. With fewer, each lease is renewed by
 * its own request, on its own schedule.
 */
const CROWD = 256;

/**
 * If the difference between the two clocks has changed by more than this, in ms, since all leases were last checked,
 * then a clock was set, has stopped, or runs too fast. So all leases are checked again.
 */
const UNEVEN_MS = 100;

/** A lease that the watchdog checks regularly. */
export interface Watched {
  /**
   * The time on the monotonic clock, in ms, before which `checkClocks` has nothing to do if both clocks run evenly. A
   * renewal may be half a second late if `isCrowded` has changed.
   */
  readonly quietUntilMs: number;
  /**
   * Checks whether the lease has expired, or whether an event is due soon.
   *
   * @param at         the current time on both clocks
   * @param isCrowded  whether there are so many leases that they should be renewed in bulk
   */
  checkClocks(at: Moment, isCrowded: boolean): void;
}

/**
 * Checks held leases against both clocks every `CHECK_MS`. Skips leases that have no event due soon. With 100,000
 * leases, checking all of them would take a fifth as long as renewing them.
 *
 * A timer follows the monotonic clock, which stops on a suspended host and does not follow jumps of the wall clock. So
 * the watchdog must compare the clocks to find leases that have expired by the wall clock. All leases share one timer,
 * because separate timers would cost 400 bytes each, and 11 ms of processor time per second for 1,000 leases. A lease
 * needs its own timer only for an event that is due before the next check.
 *
 * After the last lease has left, the timer fires at most once more.
 */
export class Watchdog {
  readonly #runtime: Runtime;
  readonly #watched = new Registry<Watched>();
  readonly #timer: SharedTimer;
  /** How far the wall clock was ahead of the monotonic clock when all leases were last checked, in ms. */
  #aheadMs = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#timer = new SharedTimer(runtime, () => this.#checkAll());
  }

  /**
   * Calls `watched.checkClocks` every `CHECK_MS` from now on, except before `watched.quietUntilMs`.
   *
   * @param number  number of the claim
   */
  join(number: number, watched: Watched): void {
    this.#watched.set(number, watched);
    this.#timer.ensure(CHECK_MS);
  }

  /** Undoes `join`, unless another object has joined with the same number since. */
  leave(number: number, watched: Watched): void {
    if (this.#watched.get(number) === watched) this.#watched.delete(number);
  }

  /** Stops the timer. */
  close(): void {
    this.#timer.cancel();
  }

  #checkAll(): void {
    if (this.#watched.size > 0) this.#timer.start(CHECK_MS);
    const at = now(this.#runtime);
    const aheadMs = at.wallMs - at.monotonicMs;
    const isUneven = Math.abs(aheadMs - this.#aheadMs) > UNEVEN_MS;
    const isCrowded = this.#watched.size >= CROWD;
    this.#watched.forEach((watched) => {
      if (isUneven || watched.quietUntilMs <= at.monotonicMs) watched.checkClocks(at, isCrowded);
    });
    if (isUneven) this.#aheadMs = aheadMs;
  }
}

/**
 * Maximum jitter of a confirmation, in ms. It spreads out confirmations, because permits can be granted to many holders
 * at the same time.
 */
const JITTER_MS = 50;

/** A grant that its holder has not confirmed yet. */
export interface Unconfirmed {
  /** When the confirmation is due, on the monotonic clock, in ms. */
  readonly confirmAtMs: number;
  /** Confirms the grant. Called once, when the confirmation is due. */
  confirmNow(): void;
}

/**
 * Returns the time on the monotonic clock, in ms, at which to confirm a grant. The server made the grant at `setAt`,
 * and the grant lasts for `provisionalMs`.
 */
export function confirmAtMs(
  runtime: Runtime,
  { setAt, provisionalMs = Infinity }: { readonly setAt: Moment; readonly provisionalMs?: number | undefined },
): number {
  return setAt.monotonicMs + Math.min(SHORT_HOLD_MS + runtime.random() * JITTER_MS, provisionalMs / 3);
}

/**
 * Confirms the grants that arrived as messages, unless the lock is released soon.
 *
 * All grants share one timer, because most locks are released before their confirmation is due. If the confirmation of
 * a new grant is due before the timer fires, the confirmation waits for the timer, for at most 300 ms.
 *
 * Each session has one instance.
 */
export class Confirmations {
  readonly #runtime: Runtime;
  readonly #waiting = new Set<Unconfirmed>();
  readonly #timer: SharedTimer;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#timer = new SharedTimer(runtime, () => this.#check());
  }

  /** Adds a grant, and confirms it when its confirmation is due. */
  add(one: Unconfirmed): void {
    this.#waiting.add(one);
    this.#timer.ensure(Math.max(0, one.confirmAtMs - this.#runtime.monotonicMs()));
  }

  /** Removes a grant that was confirmed or whose hold is over. */
  remove(one: Unconfirmed): void {
    this.#waiting.delete(one);
  }

  /** Removes all grants and stops the timer. */
  close(): void {
    this.#waiting.clear();
    this.#timer.cancel();
  }

  #arm(inMs: number): void {
    this.#timer.start(Math.max(0, inMs));
  }

  #check(): void {
    const nowMs = this.#runtime.monotonicMs();
    let nextAtMs = Infinity;
    for (const one of [...this.#waiting]) {
      if (one.confirmAtMs <= nowMs) {
        this.#waiting.delete(one);
        one.confirmNow();
      } else {
        nextAtMs = Math.min(nextAtMs, one.confirmAtMs);
      }
    }
    // `confirmNow` may have added other grants, which starts the timer.
    if (nextAtMs < Infinity && !this.#timer.isRunning) this.#arm(nextAtMs - nowMs);
  }
}

/** A hold shorter than this, in ms, needs no confirmation. */
export const SHORT_HOLD_MS = 250;

/**
 * Maximum number of locks to remember. Grants of unknown locks are confirmed immediately, which is always safe.
 */
const REMEMBERED = 10_000;

/**
 * Remembers the locks whose last hold in this process was short.
 *
 * The holder of a grant by message has to confirm it (docs/adr/130), which is an extra request. So if the last hold of
 * the lock was short, the confirmation is sent only if the current hold turns out to be longer.
 *
 * Each session has one instance. It contains only locks that were granted by message.
 */
export class ShortHolds {
  readonly #keys = new Set<string>();

  /** Whether the last hold of this lock in this process was short. */
  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** Records that a hold of this lock has ended after `heldMs`. */
  ended(key: string, heldMs: number): void {
    if (heldMs >= SHORT_HOLD_MS) {
      this.#keys.delete(key);
      return;
    }
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (this.#keys.size > REMEMBERED && oldest !== undefined) this.#keys.delete(oldest);
  }
}
