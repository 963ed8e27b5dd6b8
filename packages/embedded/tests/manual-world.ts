/** A clock and a network that a test controls. */
import { createHash } from "node:crypto";
import type { Script } from "holdfast";
import type { Clock, Scheduler } from "../src/index.js";

export class ManualClock implements Clock {
  #nowUs = 1_763_711_220_000_000;

  nowUs(): number {
    return this.#nowUs;
  }

  advance(ms: number): void {
    this.#nowUs += ms * 1000;
  }
}

/** A network that delivers only when `settle` runs. */
export class ManualNetwork implements Scheduler {
  readonly waiting: (() => void)[] = [];

  schedule(task: () => void): void {
    this.waiting.push(task);
  }

  /** Delivers the waiting tasks, and the tasks they cause, until none is left. */
  async settle(): Promise<void> {
    do {
      for (const task of this.waiting.splice(0)) task();
      // Code between two messages awaits several microtasks but no timer.
      await new Promise(setImmediate);
    } while (this.waiting.length > 0);
  }
}

/** Returns a script that is not part of the library. */
export function scriptOf(source: string): Script {
  const sha1 = createHash("sha1").update(source).digest("hex");
  return { name: "test/script", sha1, keys: [], args: [], replies: [], source };
}
