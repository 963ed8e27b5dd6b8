/** Recent measurements, kept in memory with a bounded size: the waiters of each lock, and round-trip times. */
import { type LatencySample, SAMPLE_SPAN_MS, type Samples } from "./api.js";

const SPANS = 30;
const MOST_NAMES = 10_000;
const MOST_ROUND_TRIPS = 300;

/** The number of waiters of each lock that had any in the last 30 intervals. */
export class Contention {
  /** For each lock, the maximum of each interval by its number, oldest first. */
  readonly #seen = new Map<string, Map<number, number>>();
  #firstSpan = 0;
  #lastSpan = 0;

  /** Starts a new read. If intervals were not observed, the samples before the gap are discarded. */
  begin(nowMs: number): void {
    const span = Math.floor(nowMs / SAMPLE_SPAN_MS);
    if (span > this.#lastSpan + 1 || span < this.#lastSpan) {
      this.#seen.clear();
      this.#firstSpan = span;
    }
    if (span === this.#lastSpan) return;
    this.#lastSpan = span;
    for (const [id, spans] of this.#seen) {
      for (const old of spans.keys()) if (old <= span - SPANS) spans.delete(old);
      if (spans.size === 0) this.#seen.delete(id);
    }
  }

  /** Records the number of waiters of a lock. */
  record(id: string, waiters: number): void {
    if (waiters === 0) return;
    let spans = this.#seen.get(id);
    if (spans === undefined) {
      if (this.#seen.size >= MOST_NAMES) return;
      spans = new Map();
      this.#seen.set(id, spans);
    }
    spans.set(this.#lastSpan, Math.max(waiters, spans.get(this.#lastSpan) ?? 0));
  }

  /** The samples of a lock, see `Samples`. */
  of(id: string): Samples {
    const spans = this.#seen.get(id);
    if (spans === undefined) return [];
    const first = Math.max(this.#firstSpan, this.#lastSpan - SPANS + 1);
    return Array.from({ length: this.#lastSpan - first + 1 }, (_, i) => spans.get(first + i) ?? 0);
  }

  /** The number of locks with samples. */
  get size(): number {
    return this.#seen.size;
  }
}

/** The last round-trip times. */
export class RoundTrips {
  readonly #samples: LatencySample[] = [];

  /** Records a round trip. */
  record(atMs: number, ms: number): void {
    this.#samples.push({ atMs, ms: Math.round(ms * 100) / 100 });
    if (this.#samples.length > MOST_ROUND_TRIPS) this.#samples.shift();
  }

  /** All round trips, oldest first. */
  all(): readonly LatencySample[] {
    return [...this.#samples];
  }
}
