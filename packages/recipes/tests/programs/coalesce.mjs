// @ts-check
/** A caller of `coalesce` in a separate process. */

import { coalesce } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
// Long, because many simultaneous requests are slow on a slow machine, and retries do not help.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 30_000 });

/** @type {() => void} */
let finish = () => {};
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined);
});

/** @param {unknown} error */
function told(error) {
  if (!(error instanceof Error)) throw error;
  return { error: error.name, value: "value" in error ? error.value : undefined };
}

serve({
  /** Opens the inbox, so that later calls can receive messages. @param {{ name: string }} input */
  async ready({ name }) {
    await Promise.all([1, 2].map(() => coalesce(holdfast, name, () => redis.ping())));
  },

  /**
   * Makes one call that reports when it begins and runs until `finish` is called.
   *
   * @param {{ name: string, mark: string, leaseMs: number, mode?: "newest" | "join", cancelRunning?: boolean }} input
   */
  async run({ name, mark, leaseMs, mode, cancelRunning }) {
    const work = async () => {
      await tell("began");
      await redis.rpush(`${name}:runs`, mark);
      await finished;
      return mark;
    };
    const options = { leaseMs, mode: mode ?? "newest", cancelRunning: cancelRunning ?? false };
    return await coalesce(holdfast, name, work, options).catch(told);
  },

  finish: () => finish(),

  /**
   * Makes `calls` calls, `atOnce` of them at a time. Each run records how many calls had arrived and counts overlaps.
   *
   * @param {{ name: string, calls: number, atOnce: number, mode: "newest" | "join" }} input
   * @returns {Promise<Record<string, number>>} how often each outcome occurred
   */
  async many({ name, calls, atOnce, mode }) {
    /** @type {Record<string, number>} */
    const outcomes = {};
    const some = async (/** @type {number} */ first) => {
      for (let at = first; at < calls; at += atOnce) {
        const payload = await redis.incr(`${name}:payload`);
        const work = async () => {
          const begun = await redis.get(`${name}:payload`);
          if ((await redis.incr(`${name}:inside`)) > 1) await redis.incr(`${name}:overlaps`);
          await redis.rpush(`${name}:runs`, `${payload} ${begun}`);
          await redis.decr(`${name}:inside`);
          return payload;
        };
        const { outcome } = await coalesce(holdfast, name, work, { mode, leaseMs: 120_000 });
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, (_, first) => some(first)));
    return outcomes;
  },
});
