// @ts-check
/** A caller of `coalesce` in a process of its own. */
import { createHoldfast } from "holdfast";
import { coalesce } from "holdfast/recipes";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
// On a machine that is slow many requests at once take their time, and asking again does not help.
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
  /** From then on it can be told of its turn. @param {{ name: string }} input */
  async ready({ name }) {
    await Promise.all([1, 2].map(() => coalesce(holdfast, name, () => redis.ping())));
  },

  /**
   * One call, which says when it begins, and works until `finish` is called.
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
   * So many calls, so many of them on their way at once. Each wants done what had come by when it called, and runs count who is
   * inside.
   *
   * @param {{ name: string, calls: number, atOnce: number, mode: "newest" | "join" }} input
   * @returns {Promise<Record<string, number>>} how often each outcome
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
