/** What the console has seen of late, in memory and bounded: how many waited for each lock, and how long the server took. */
import { type LatencySample, SAMPLE_SPAN_MS, type Samples } from "./api.js";

const SPANS = 30;
const MOST_NAMES = 10_000;
const MOST_ROUND_TRIPS = 300;

/** How many waited, for each lock that anybody has waited for in the last 30 spans. */
export class Contention {
  /** By lock: span number and the most that were seen in it, oldest first. */
  readonly #seen = new Map<string, Map<number, number>>();
  #firstSpan = 0;
  #lastSpan = 0;

  /** A new look begins. Spans that nobody looked at are not made up: a gap forgets what was before. */
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

  /** So many wait for it now. */
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

  /** See `Samples`. */
  of(id: string): Samples {
    const spans = this.#seen.get(id);
    if (spans === undefined) return [];
    const first = Math.max(this.#firstSpan, this.#lastSpan - SPANS + 1);
    return Array.from({ length: this.#lastSpan - first + 1 }, (_, i) => spans.get(first + i) ?? 0);
  }

  /** How many locks it remembers. */
  get size(): number {
    return this.#seen.size;
  }
}

/** The last round trips. */
export class RoundTrips {
  readonly #samples: LatencySample[] = [];

  /** One was made. */
  record(atMs: number, ms: number): void {
    this.#samples.push({ atMs, ms: Math.round(ms * 100) / 100 });
    if (this.#samples.length > MOST_ROUND_TRIPS) this.#samples.shift();
  }

  /** Oldest first. */
  all(): readonly LatencySample[] {
    return [...this.#samples];
  }
}
