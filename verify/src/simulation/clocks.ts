/** The server's wall clock: true time with what faults have done to it. */
import type { Clock } from "@holdfast/embedded";

const START_MS = 1_763_711_220_000;

/** See the file header. */
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

  /** By how much it was set forward in all, less what it stood still. */
  get aheadMs(): number {
    return this.#offsetMs;
  }

  /** Sets the clock. */
  step(byMs: number): void {
    this.#offsetMs += byMs;
  }

  /** It stands still. */
  freeze(): void {
    this.#frozenAtMs ??= this.#trueMs();
  }

  /** It goes on where it stood. */
  resume(): void {
    if (this.#frozenAtMs !== undefined) this.#offsetMs -= this.#trueMs() - this.#frozenAtMs;
    this.#frozenAtMs = undefined;
  }
}
