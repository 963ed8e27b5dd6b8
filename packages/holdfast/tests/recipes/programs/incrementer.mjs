// @ts-check
/** Counts in a versioned value, in a process of its own. */
import { createHoldfast } from "holdfast";
import { versioned } from "holdfast/recipes";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port, retryStrategy: () => 20 });
redis.on("error", () => {});
const holdfast = createHoldfast({ redis, commandTimeoutMs: 60_000, leaseMs: args.leaseMs ?? 30_000 });

serve({
  /**
   * So many writers at once, each of which counts one on so many times.
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

  /** Counts without end, and says so after the first time. @param {{ name: string }} input */
  async countOn({ name }) {
    const total = versioned(holdfast, name);
    for (let n = 0; ; n += 1) {
      await total.update((old) => Number(old ?? 0) + 1, { attemptsMax: 100_000, promoteAfter: 1, waitMs: Infinity });
      if (n === 0) await tell("counting");
    }
  },

  /**
   * Counts one on, comes under the mutex with that, is stopped there by its own hand, and writes when somebody lets it go on.
   *
   * @param {{ name: string, attemptsMax: number }} input
   * @returns what it has seen in each attempt, and what became of it
   */
  async countLate({ name, attemptsMax }) {
    const total = versioned(holdfast, name);
    /** @type {number[]} */
    const seen = [];
    /** @param {unknown} old */
    const change = async (old) => {
      const count = Number(old ?? 0);
      seen.push(count);
      // Another one is first, in its own process: it comes under the mutex with the second attempt.
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
