/**
 * Determines the delay after an attempt that failed because of concurrent attempts. If all of them retried together,
 * they would split the votes again, so the delay is random and longer than it takes to win a majority. The range of the
 * random part grows with each failure.
 */
import type { Runtime } from "../core/runtime.js";

/**
 * Longest time until a waiter asks again, in ms. If a message is lost, the lock can be free but unused for this long.
 */
export const RECHECK_MS = 2_000;

const SHORTEST_WIN_MS = 1;
const LONGEST_WIN_MS = 100;
const SHORTEST_PATIENCE_MS = 20;
const WINS_OF_PATIENCE = 4;
/** Maximum number of times that the spread is doubled. */
const DOUBLINGS = 5;
/** Weight of the newest attempt in the estimate of `winMs`. */
const NEWEST = 0.25;

/** Delays between attempts. One object per Holdfast instance, because all of its attempts go to the same servers. */
export class Pace {
  readonly #runtime: Runtime;
  #winMs = 5;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Estimated time to win a majority, in ms. */
  get winMs(): number {
    return this.#winMs;
  }

  /** How long to wait for the first server before asking the others, in ms. */
  get patienceMs(): number {
    return Math.max(SHORTEST_PATIENCE_MS, WINS_OF_PATIENCE * this.#winMs);
  }

  /** Updates the estimate with the duration of an attempt to which a majority replied. */
  took(durationMs: number): void {
    const boundedMs = Math.min(LONGEST_WIN_MS, Math.max(SHORTEST_WIN_MS, durationMs));
    this.#winMs += (boundedMs - this.#winMs) * NEWEST;
  }

  /**
   * Returns a random delay before the next attempt, in ms.
   *
   * @param collisions  number of consecutive attempts that failed because of concurrent attempts
   */
  delayMs(collisions: number): number {
    const spreadMs = this.#winMs * 2 ** (1 + Math.min(collisions, DOUBLINGS));
    return this.#winMs + this.#runtime.random() * spreadMs;
  }
}
