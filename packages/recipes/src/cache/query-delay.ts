import type { Runtime, Timer } from "holdfast/internal";
import type { CacheCaller, Callers } from "./callers.js";

/**
 * The sleep of a waiting flight. It ends when it is time for the next query, or when the deadline of a caller passes.
 */
export class QueryDelay<Value> {
  readonly #runtime: Runtime;
  readonly #callers: Callers<Value>;
  readonly #onOver: (overdue: CacheCaller<Value> | undefined) => void;
  #endsAtMs = 0;
  #wakesAtMs = 0;
  #timer: Timer | undefined;

  /** @param onOver  called at the end of each sleep, with a caller whose deadline has passed, if any */
  constructor(runtime: Runtime, callers: Callers<Value>, onOver: (overdue: CacheCaller<Value> | undefined) => void) {
    this.#runtime = runtime;
    this.#callers = callers;
    this.#onOver = onOver;
  }

  /** Sleeps for `ms` milliseconds. The timer keeps the process alive, because callers are waiting. */
  begin(ms: number): void {
    this.#endsAtMs = this.#runtime.monotonicMs() + ms;
    this.#arm();
  }

  /**
   * Accounts for a new caller whose deadline is `untilMs`. Checks only this deadline, because checking all of them
   * would be slow when many callers join one by one.
   */
  joined(untilMs: number): void {
    if (untilMs < this.#wakesAtMs) this.#sleep(untilMs);
  }

  /** Ends the sleep without calling `onOver`. */
  end(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#sleep(Math.min(this.#endsAtMs, this.#callers.soonestMs));
  }

  #sleep(untilMs: number): void {
    this.#timer?.cancel();
    this.#wakesAtMs = untilMs;
    this.#timer = this.#runtime.startTimer(() => this.#tick(), untilMs - this.#runtime.monotonicMs(), true);
  }

  #tick(): void {
    const nowMs = this.#runtime.monotonicMs();
    const overdue = this.#callers.overdue(nowMs);
    if (overdue !== undefined || nowMs >= this.#endsAtMs) this.#onOver(overdue);
    else this.#arm();
  }
}
