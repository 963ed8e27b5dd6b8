/**
 * Looks at both clocks every now and then on behalf of all leases that are held.
 *
 * A timer runs on the monotonic clock, which stands still in a suspended host and hears of no step of the wall clock;
 * what is over by the wall clock must be found by looking. One timer for all, since one for each lease would cost
 * 11 ms of processor time per second and 1 000 leases, and 400 bytes for each; and since nothing comes due between two
 * looks without a word, a lease needs a timer of its own only for what is near.
 */
import { Registry } from "./registry.js";
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";
import { type Moment, now } from "./validity.js";

/** How long after the process runs on a lease that is over by any clock may go unnoticed; lease.ts promises it. */
export const LOOK_MS = 1_000;

/** Fewer are renewed each by itself, at its time. */
const CROWD = 256;

/** Finds out by its clocks whether it is over, or soon will be. */
export interface Watched {
  /** @param isCrowded  whether so many are looked at that they had better be renewed together */
  look(at: Moment, isCrowded: boolean): void;
}

/** See the file header. Has no timer for longer than a look after the last has left. */
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
