/** The server's wall clock: true time changed by faults. */
import type { Clock } from "@holdfast/embedded";

const START_MS = 1_763_711_220_000;

/** The server's clock. */
export class ServerClock implements Clock {
  readonly #trueMs: () => number;
  #offsetMs = 0;
  #frozenAtMs: number | undefined;

  constructor(trueMs: () => number) {
    this.#trueMs = trueMs;
  }

  nowUs(): number {
    return Math.floor((START_MS + (this.#frozenAtMs ?? this.#trueMs()) + this.#offsetMs) * 1_000);
  }

  /** The total of its steps, minus the time for which it was stopped. */
  get aheadMs(): number {
    return this.#offsetMs;
  }

  /** Steps the clock. */
  step(byMs: number): void {
    this.#offsetMs += byMs;
  }

  /** Stops the clock. */
  freeze(): void {
    this.#frozenAtMs ??= this.#trueMs();
  }

  /** Lets the clock continue from where it stopped. */
  resume(): void {
    if (this.#frozenAtMs !== undefined) this.#offsetMs -= this.#trueMs() - this.#frozenAtMs;
    this.#frozenAtMs = undefined;
  }
}
