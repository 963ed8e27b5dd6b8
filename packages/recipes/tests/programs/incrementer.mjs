// @ts-check
/** Increments a versioned value in a separate process. */

import { versioned } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port, retryStrategy: () => 20 });
redis.on("error", () => {});
const holdfast = createHoldfast({ redis, commandTimeoutMs: 60_000, leaseMs: args.leaseMs ?? 30_000 });

serve({
  /**
   * Runs `writers` writers at the same time, each of which increments `times` times.
   *
   * @param {{ name: string, writers: number, times: number, promoteAfter: number }} input
   * @returns the versions that they wrote
   */
  async count({ name, writers, times, promoteAfter }) {
    const total = versioned(holdfast, name);
    /** @type {number[]} */
    const versions = [];
    await Promise.all(
      Array.from({ length: writers }, async () => {
        for (let n = 0; n < times; n += 1) {
          const options = { attemptsMax: 100_000, promoteAfter, waitMs: Infinity };
          const { version } = await total.update((old) => Number(old ?? 0) + 1, options);
          versions.push(version);
        }
      }),
    );
    return versions;
  },

  /** Increments forever and reports after the first time. @param {{ name: string }} input */
  async countOn({ name }) {
    const total = versioned(holdfast, name);
    for (let n = 0; ; n += 1) {
      await total.update((old) => Number(old ?? 0) + 1, { attemptsMax: 100_000, promoteAfter: 1, waitMs: Infinity });
      if (n === 0) await tell("counting");
    }
  },

  /**
   * Increments after a conflict and so with the mutex, freezes itself there, and writes when it is resumed.
   *
   * @param {{ name: string, attemptsMax: number }} input
   * @returns the value that each attempt read, and the outcome
   */
  async countLate({ name, attemptsMax }) {
    const total = versioned(holdfast, name);
    /** @type {number[]} */
    const seen = [];
    /** @param {unknown} old */
    const change = async (old) => {
      const count = Number(old ?? 0);
      seen.push(count);
      // Causes a conflict in the first attempt, so that the second one takes the mutex.
      if (seen.length === 1) await total.update(() => count + 1);
      if (seen.length === 2) {
        await tell("promoted");
        process.kill(process.pid, "SIGSTOP");
      }
      return count + 1;
    };
    try {
      const { value } = await total.update(change, { attemptsMax, promoteAfter: 1, waitMs: Infinity });
      return { seen, value };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { seen, error: error.name };
    }
  },
});
