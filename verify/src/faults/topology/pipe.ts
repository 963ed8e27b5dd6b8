/** One direction of one connection: passes things on in order, at once, later, or not before it is let. */

/** What holds for a direction of all connections of a proxy. */
export interface Weather {
  isStalled: boolean;
  /** Time that the next thing is on its way, in ms; absent for none. */
  drawMs: (() => number) | undefined;
}

/** See the file header. What is put in is given to `pass` once, never sooner than what was put in before. */
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

  /** Passes on what is due. To be called when a stall ends. */
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

  /** Calls once nothing is left on its way. */
  whenEmpty(then: () => void): void {
    this.#onEmpty = then;
    this.drain();
  }

  /** Forgets what is on its way. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }
}
