/**
 * Time since it was made, by the monotonic and the wall clock, whichever says more: the first stands still while the host
 * sleeps, the second may be set back.
 */
export class Stopwatch {
  readonly #monotonicMs = performance.now();
  readonly #wallMs = Date.now();

  /** In ms. */
  elapsedMs(): number {
    return Math.max(performance.now() - this.#monotonicMs, Date.now() - this.#wallMs);
  }
}
