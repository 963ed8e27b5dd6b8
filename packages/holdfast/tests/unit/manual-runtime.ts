/** A runtime whose clocks and random numbers are controlled by tests. */
import type { Runtime, Timer } from "../../src/core/runtime.js";

interface Pending {
  readonly callback: () => void;
  readonly dueMs: number;
  readonly keepAlive: boolean;
}

/** Both clocks and all timers. A delay is rounded up to whole milliseconds, as in Node.js. */
export class ManualRuntime implements Runtime {
  readonly #timers = new Set<Pending>();
  #monotonicMs = 500_000;
  #wallMs = 1_763_711_220_000;
  /** The number of timers ever started. */
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

  /** The number of running timers. With an argument, only those that do, or do not, keep the process alive. */
  running(keepAlive?: boolean): number {
    return [...this.#timers].filter((timer) => keepAlive === undefined || timer.keepAlive === keepAlive).length;
  }

  /** Advances both clocks by `ms` and fires due timers in order, each together with everything that follows from it. */
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

  /** The event loop is blocked or the process is stopped: both clocks advance but no timer fires. */
  block(ms: number): void {
    this.#pass(ms);
  }

  /** The host is suspended: only the wall clock advances. Also used to set that clock forward or back. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }
}

/** Lets all pending promise callbacks run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
}
