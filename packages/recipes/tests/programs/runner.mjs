// @ts-check
/** A caller of `once` in a separate process. */

import { once } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @type {() => void} */
let finish = () => {};
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined);
});

serve({
  /**
   * Runs the call: records the run, saves a recovery point, reports that, and works for `workMs` or until `finish`.
   *
   * @param {{ key: string, leaseMs: number, workMs?: number, mark: string }} input
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
          await (workMs === undefined ? finished : sleep(workMs));
          return `${mark} after ${JSON.stringify(lease.saved ?? null)}`;
        },
        { leaseMs, waitMs: 60_000 },
      );
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { error: error.name, value: "value" in error ? error.value : undefined };
    }
  },

  finish: () => finish(),

  /**
   * Makes many calls at the same time. With `stalls`, the first call that runs here reports that and never ends.
   *
   * @param {{ keys: string[], leaseMs: number, stalls?: boolean }} input
   */
  async many({ keys, leaseMs, stalls = false }) {
    let isToStall = stalls;
    return await Promise.all(
      keys.map(async (key) => {
        const { value } = await once(
          holdfast,
          key,
          async (lease) => {
            const isStalling = isToStall;
            isToStall = false;
            await redis.incr(`${key}:effects`);
            if (isStalling) {
              await tell("running", key);
              await new Promise(() => {});
            }
            return lease.token;
          },
          { leaseMs, waitMs: 60_000 },
        );
        return value;
      }),
    );
  },
});
