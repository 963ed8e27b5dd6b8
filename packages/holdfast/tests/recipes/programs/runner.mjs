// @ts-check
/** A caller of `once` in a process of its own. */
import { createHoldfast } from "holdfast";
import { once } from "holdfast/recipes";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

serve({
  /**
   * Runs the call: counts that it did, saves a recovery point, says that it has, and works on for so long.
   *
   * @param {{ key: string, leaseMs: number, workMs: number, mark: string }} input
   */
  async run({ key, leaseMs, workMs, mark }) {
    try {
      return await once(
        holdfast,
        key,
        async (lease) => {
          await redis.rpush(`${key}:runs`, `${mark} ${lease.attempt} ${lease.token}`);
          await lease.save({ by: mark });
          process.send?.({ name: "saved" });
          await sleep(workMs);
          return `${mark} after ${JSON.stringify(lease.saved ?? null)}`;
        },
        { leaseMs, waitMs: 60_000 },
      );
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { error: error.name, value: "value" in error ? error.value : undefined };
    }
  },

  /**
   * Many calls, each at once with others of other processes.
   *
   * @param {{ keys: string[], leaseMs: number }} input
   */
  async many({ keys, leaseMs }) {
    return await Promise.all(
      keys.map(async (key) => {
        const { value } = await once(
          holdfast,
          key,
          async (lease) => {
            await redis.incr(`${key}:effects`);
            return lease.token;
          },
          { leaseMs, waitMs: 60_000 },
        );
        return value;
      }),
    );
  },
});
