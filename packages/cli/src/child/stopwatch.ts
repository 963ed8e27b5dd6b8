/**
 * Measures the time since its construction with both the monotonic clock and the wall clock, and reports the longer
 * one. The monotonic clock stops while the host sleeps, and the wall clock can be set back.
 */
export class Stopwatch {
  readonly #monotonicMs = performance.now();
  readonly #wallMs = Date.now();

  /** The elapsed time in ms. */
  elapsedMs(): number {
    return Math.max(performance.now() - this.#monotonicMs, Date.now() - this.#wallMs);
  }
}
