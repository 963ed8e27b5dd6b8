/**
 * Measures the time since its construction with the monotonic and the wall clock, and reports the longer of the two.
 * The monotonic clock stops while the host sleeps, and the wall clock may be set back.
 */
export class Stopwatch {
  readonly #monotonicMs = performance.now();
  readonly #wallMs = Date.now();

  /** The elapsed time in ms. */
  elapsedMs(): number {
    return Math.max(performance.now() - this.#monotonicMs, Date.now() - this.#wallMs);
  }
}
