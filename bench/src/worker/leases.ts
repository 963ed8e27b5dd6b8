import { setTimeout as sleep } from "node:timers/promises";
import type { Contestant, Held } from "../adapters/adapter.js";
import type { Hold, HoldDone } from "./orders.js";

const PARALLEL = 256;
/** Allocates compiled code and connection buffers beforehand, so that they do not count as memory of leases. */
const WARM_UP_LEASES = 5_000;

/** Acquires many names and keeps them. */
export class Holdings {
  readonly #contestant: Contestant;
  readonly #held: Held[] = [];

  constructor(contestant: Contestant) {
    this.#contestant = contestant;
  }

  /** @returns the memory of this process that the leases use after `settleMs`, after a garbage collection */
  async hold({ leases, settleMs = 0 }: Hold): Promise<HoldDone> {
    const warm: Held[] = [];
    await this.#fill(warm, "warm", Math.min(leases, WARM_UP_LEASES));
    await Promise.all(warm.splice(0).map((held) => held.release()));
    const before = memory();
    await this.#fill(this.#held, "held", leases);
    await sleep(settleMs);
    return { bytes: memory() - before };
  }

  async #fill(into: Held[], prefix: string, leases: number): Promise<void> {
    let next = 0;
    const caller = async (): Promise<void> => {
      while (next < leases) {
        next += 1;
        into.push(await this.#contestant.acquire(`${prefix}:${next}`));
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, caller));
  }
}

function memory(): number {
  if (globalThis.gc === undefined) throw new Error("a worker that weighs leases needs --expose-gc");
  // Twice, because objects with finalizers are freed only by the second collection.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
