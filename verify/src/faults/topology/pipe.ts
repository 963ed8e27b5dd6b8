/** One direction of a connection: forwards items in order, immediately, delayed, or not until allowed. */

/** The conditions of one direction, for all connections of a proxy. */
export interface Weather {
  isStalled: boolean;
  /** Draws the delay of the next item, in ms; absent for none. */
  drawMs: (() => number) | undefined;
}

/** Passes each item to `pass` once, in order. */
export class Pipe<Item> {
  readonly #weather: Weather;
  readonly #pass: (item: Item) => void;
  readonly #waiting: { readonly item: Item; readonly dueMs: number }[] = [];
  #lastDueMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(weather: Weather, pass: (item: Item) => void) {
    this.#weather = weather;
    this.#pass = pass;
  }

  put(item: Item): void {
    const { drawMs, isStalled } = this.#weather;
    if (drawMs === undefined && !isStalled && this.#waiting.length === 0) {
      this.#pass(item);
      return;
    }
    const delayMs = drawMs === undefined ? 0 : Math.max(0, drawMs());
    this.#lastDueMs = Math.max(this.#lastDueMs, performance.now() + delayMs);
    this.#waiting.push({ item, dueMs: this.#lastDueMs });
    this.drain();
  }

  /** Forwards everything that is due. Call it when a stall ends. */
  drain(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#weather.isStalled) {
      const [next] = this.#waiting;
      if (next === undefined) {
        this.#onEmpty?.();
        this.#onEmpty = undefined;
        return;
      }
      const leftMs = next.dueMs - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.drain(), leftMs);
        return;
      }
      this.#waiting.shift();
      this.#pass(next.item);
    }
  }

  /** Calls `then` when nothing is in transit. */
  whenEmpty(then: () => void): void {
    this.#onEmpty = then;
    this.drain();
  }

  /** Drops everything in transit. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }
}
