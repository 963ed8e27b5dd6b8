/**
 * One timer for a purpose that many share, such as looking at all leases.
 *
 * A timer may never fire: a test that fakes timers and restores the real ones forgets those that were set meanwhile. So the clock is
 * compared whenever the timer is needed, and one that should have fired long ago is replaced.
 */
import { outsideRequests } from "./outside-requests.js";
import type { Runtime, Timer } from "./runtime.js";

/** How late a timer may be before it counts as lost, in ms. A busy event loop is later than that only rarely, which does no harm. */
const LOST_AFTER_MS = 1_000;

/** See the file header. It never keeps the process alive. */
export class SharedTimer {
  readonly #runtime: Runtime;
  readonly #onDue: () => void;
  #timer: Timer | undefined;
  #startedAtMs = 0;
  #dueAtMs = 0;

  constructor(runtime: Runtime, onDue: () => void) {
    this.#runtime = runtime;
    this.#onDue = onDue;
  }

  /** Whether it was started, has not fired, and can still be expected to. A clock that went back was a fake one. */
  get isRunning(): boolean {
    if (this.#timer === undefined) return false;
    const nowMs = this.#runtime.monotonicMs();
    return nowMs >= this.#startedAtMs && nowMs <= this.#dueAtMs + LOST_AFTER_MS;
  }

  /** Starts it, unless it is running. */
  ensure(delayMs: number): void {
    if (this.isRunning) return;
    // A lost timer is due already. It is started without a delay, so that a slow process does not wait longer.
    this.start(this.#timer === undefined ? delayMs : 0);
  }

  /** Starts it; one that is running is replaced. */
  start(delayMs: number): void {
    this.cancel();
    this.#startedAtMs = this.#runtime.monotonicMs();
    this.#dueAtMs = this.#startedAtMs + delayMs;
    const onDue = (): void => {
      this.#timer = undefined;
      this.#onDue();
    };
    this.#timer = outsideRequests(() => this.#runtime.startTimer(onDue, delayMs, false));
  }

  /** Stops it. It can be started again. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
