/** Time and chance in the hands of a test: nothing moves unless it is told to. */
import type { Runtime, Timer } from "../../src/core/runtime.js";

interface Pending {
  readonly callback: () => void;
  readonly dueMs: number;
  readonly keepAlive: boolean;
}

/** Both clocks, all timers. A delay is rounded up to whole milliseconds, as Node does it. */
export class ManualRuntime implements Runtime {
  readonly #timers = new Set<Pending>();
  #monotonicMs = 500_000;
  #wallMs = 1_763_711_220_000;
  /** How many timers were ever started. */
  started = 0;
  random: () => number = () => 0.5;

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  newClientId(): string {
    return "manual-client-00";
  }

  startTimer(callback: () => void, delayMs: number, keepAlive: boolean): Timer {
    if (Number.isNaN(delayMs)) throw new Error("a timer of NaN ms fires at once");
    const timer = { callback, dueMs: this.#monotonicMs + Math.max(1, Math.ceil(delayMs)), keepAlive };
    this.#timers.add(timer);
    this.started += 1;
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** How many timers run; with an argument, only those that do, or do not, keep the process alive. */
  running(keepAlive?: boolean): number {
    return [...this.#timers].filter((timer) => keepAlive === undefined || timer.keepAlive === keepAlive).length;
  }

  /** Lets `ms` pass on both clocks, and fires what is due, in order, each with all that follows from it. */
  async advance(ms: number): Promise<void> {
    await settle();
    const endMs = this.#monotonicMs + ms;
    for (;;) {
      const next = [...this.#timers].reduce<Pending | undefined>(
        (first, timer) => (first === undefined || timer.dueMs < first.dueMs ? timer : first),
        undefined,
      );
      if (next === undefined || next.dueMs > endMs) break;
      this.#pass(Math.max(0, next.dueMs - this.#monotonicMs));
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    this.#pass(endMs - this.#monotonicMs);
    await settle();
  }

  /** The event loop is blocked, or the process stopped: both clocks go on and no timer fires. */
  block(ms: number): void {
    this.#pass(ms);
  }

  /** The host is suspended: only the wall clock goes on. Also how somebody sets that clock, forward or back. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }
}

/** Lets everything happen that waits for promises alone. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
}
