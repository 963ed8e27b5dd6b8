/** Time and network in the hands of a test. */
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

/** A network that delivers only when told to. */
export class ManualNetwork implements Scheduler {
  readonly waiting: (() => void)[] = [];

  schedule(task: () => void): void {
    this.waiting.push(task);
  }

  /** Delivers what is waiting, and what comes of it, until all is quiet. */
  async settle(): Promise<void> {
    do {
      for (const task of this.waiting.splice(0)) task();
      // What is awaited between two messages takes several microtasks, none of them a timer.
      await new Promise(setImmediate);
    } while (this.waiting.length > 0);
  }
}

/** A script that is not one of the library's. */
export function scriptOf(source: string): Script {
  const sha1 = createHash("sha1").update(source).digest("hex");
  return { name: "test/script", sha1, keys: [], args: [], replies: [], source };
}
