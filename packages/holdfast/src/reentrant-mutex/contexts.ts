/**
 * Tracks which holds enclose the running code. Only `run` of a reentrant mutex encloses code in a hold.
 *
 * Tracking async contexts slows down every promise in the process on some runtimes, so tracking starts with the first
 * `run`. Never use `enterWith` here: it would also affect code that the same caller starts later, outside the holder's
 * work. See docs/adr/020-reentrancy-by-run-only.md.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { SharedHold } from "./shared-hold.js";

/** One `run`, linked to the one that encloses it. */
interface Context {
  readonly key: string;
  readonly hold: SharedHold;
  readonly outer: Context | undefined;
}

/** The contexts of one Holdfast instance. Costs nothing until `run` is called. */
export class HoldContexts {
  #storage: AsyncLocalStorage<Context> | undefined;

  /** The innermost unreleased hold on the lock at `key` that encloses the running code. */
  find(key: string): SharedHold | undefined {
    for (let context = this.#storage?.getStore(); context !== undefined; context = context.outer) {
      if (context.key === key && context.hold.count > 0) return context.hold;
    }
    return undefined;
  }

  /** Calls `work` so that it, and everything it starts, runs inside `hold`. */
  run<Result>(key: string, hold: SharedHold, work: () => Result): Result {
    if (this.find(key) === hold) return work();
    this.#storage ??= new AsyncLocalStorage();
    return this.#storage.run({ key, hold, outer: this.#storage.getStore() }, work);
  }
}
