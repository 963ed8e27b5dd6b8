/**
 * Which holds the running code stands in: what `run` of a reentrant mutex establishes, and nothing else.
 *
 * Tracking async contexts slows every promise of the process on some runtimes, so nothing is tracked before the
 * first `run`. The storage is never entered by `enterWith`: that would reach code which the same caller starts
 * later, beside the holder and not inside its work. See docs/adr/020-reentrancy-by-run-only.md.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { SharedHold } from "./shared-hold.js";

/** One `run`, and those around it. */
interface Context {
  readonly key: string;
  readonly hold: SharedHold;
  readonly outer: Context | undefined;
}

/** The contexts of one Holdfast. Costs nothing until `run` is called. */
export class HoldContexts {
  #storage: AsyncLocalStorage<Context> | undefined;

  /** The hold on the lock at `key` that the running code stands in and that has not been given back. */
  find(key: string): SharedHold | undefined {
    for (let context = this.#storage?.getStore(); context !== undefined; context = context.outer) {
      if (context.key === key && context.hold.count > 0) return context.hold;
    }
    return undefined;
  }

  /** Calls `work` so that it, and whatever it starts, stands in `hold`. */
  run<Result>(key: string, hold: SharedHold, work: () => Result): Result {
    if (this.find(key) === hold) return work();
    this.#storage ??= new AsyncLocalStorage();
    return this.#storage.run({ key, hold, outer: this.#storage.getStore() }, work);
  }
}
