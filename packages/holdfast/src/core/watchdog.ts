/**
 * What is watched for all leases of a process together, so that a lease needs no timer of its own.
 */
import { Registry } from "./inbox.js";
import { type Runtime, SharedTimer } from "./runtime.js";
import { type Moment, now } from "./time.js";

/** How long after the process runs on a lease that is over by any clock may go unnoticed; lease.ts promises it. */
export const LOOK_MS = 1_000;

/** Fewer are renewed each by itself, at its time. */
const CROWD = 256;

/** Finds out by its clocks whether it is over, or soon will be. */
export interface Watched {
  /** @param isCrowded  whether so many are looked at that they had better be renewed together */
  look(at: Moment, isCrowded: boolean): void;
}

/**
 * Looks at both clocks every now and then on behalf of all leases that are held.
 *
 * A timer runs on the monotonic clock, which stands still in a suspended host and hears of no step of the wall clock;
 * what is over by the wall clock must be found by looking. One timer for all, since one for each lease would cost
 * 11 ms of processor time per second and 1,000 leases, and 400 bytes for each; and since nothing comes due between two
 * looks without a word, a lease needs a timer of its own only for what is near.
 *
 * Has no timer for longer than a look after the last has left.
 */
export class Watchdog {
  readonly #runtime: Runtime;
  readonly #watched = new Registry<Watched>();
  readonly #timer: SharedTimer;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#timer = new SharedTimer(runtime, () => this.#lookAtAll());
  }

  /** From now on it looks every `LOOK_MS`. */
  join(number: number, watched: Watched): void {
    this.#watched.set(number, watched);
    this.#timer.ensure(LOOK_MS);
  }

  /** Undoes `join`, unless somebody else has joined with that number since. */
  leave(number: number, watched: Watched): void {
    if (this.#watched.get(number) === watched) this.#watched.delete(number);
  }

  /** Nobody is left. */
  close(): void {
    this.#timer.cancel();
  }

  #lookAtAll(): void {
    if (this.#watched.size > 0) this.#timer.start(LOOK_MS);
    const at = now(this.#runtime);
    const isCrowded = this.#watched.size >= CROWD;
    for (const watched of this.#watched.values()) watched.look(at, isCrowded);
  }
}

/** Permits are granted to many at a time: their confirmations need not come at the same moment. */
const JITTER_MS = 50;

/** A grant that its holder has not confirmed. */
export interface Unconfirmed {
  /** When it is to be confirmed, on the monotonic clock, in ms. */
  readonly confirmAtMs: number;
  /** It is due. Called once. */
  confirmNow(): void;
}

/** When a grant is to be confirmed that the server made at `setAt` and that lasts for `provisionalMs`. */
export function confirmAtMs(
  runtime: Runtime,
  { setAt, provisionalMs = Infinity }: { readonly setAt: Moment; readonly provisionalMs?: number | undefined },
): number {
  return setAt.monotonicMs + Math.min(SHORT_HOLD_MS + runtime.random() * JITTER_MS, provisionalMs / 3);
}

/**
 * Confirms grants by message when their sections turn out not to be short.
 *
 * One timer serves all of them, because most sections end before their confirmation is due. The timer may be set for a later one when
 * an earlier one is added. That delays the earlier one by at most the time until the timer fires, 300 ms.
 *
 * One for each Holdfast.
 */
export class Confirmations {
  readonly #runtime: Runtime;
  readonly #waiting = new Set<Unconfirmed>();
  readonly #timer: SharedTimer;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#timer = new SharedTimer(runtime, () => this.#look());
  }

  /** From now on it is confirmed when it is due. */
  add(one: Unconfirmed): void {
    this.#waiting.add(one);
    this.#timer.ensure(Math.max(0, one.confirmAtMs - this.#runtime.monotonicMs()));
  }

  /** It was confirmed, or is over. */
  remove(one: Unconfirmed): void {
    this.#waiting.delete(one);
  }

  /** Nobody is left. */
  close(): void {
    this.#waiting.clear();
    this.#timer.cancel();
  }

  #arm(inMs: number): void {
    this.#timer.start(Math.max(0, inMs));
  }

  #look(): void {
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
    // A confirmation may have added others and armed the timer.
    if (nextAtMs < Infinity && !this.#timer.isRunning) this.#arm(nextAtMs - nowMs);
  }
}

/** Sections that end before that need no confirmation, in ms. */
export const SHORT_HOLD_MS = 250;

/** How many locks are remembered: those of which nothing is known are confirmed immediately, which is always safe. */
const REMEMBERED = 10_000;

/**
 * Which locks this process last held for a short time.
 *
 * The holder of a grant by message has to confirm it (docs/adr/130). For short sections that would be one more message each, so where
 * the last hold of the lock was short, the confirmation waits until this one turns out to be longer.
 *
 * One for each Holdfast; only locks that were granted by message are entered.
 */
export class ShortHolds {
  readonly #keys = new Set<string>();

  /** Whether the last hold of that lock here was short. */
  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** A hold of that lock has ended after `heldMs`. */
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
