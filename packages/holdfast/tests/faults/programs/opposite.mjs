// @ts-check
/**
 * One of several processes that acquire the same locks, each in its own order. Each section increments a counter per
 * lock with a read and a write on another connection, so only the locks keep the counts right.
 */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "./serve.mjs";

const redis = new Redis({ port: args.port });
const counters = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

serve({
  /** Warms up so that all processes begin together. */
  async ready() {
    await holdfast.mutex("warm").run(() => counters.ping());
  },

  /** Returns the longest wait in ms. */
  async work({ names, sections, callers, waitMs }) {
    const lock = holdfast.multiLock(names);
    let longestMs = 0;
    let left = sections;
    async function work() {
      while (left > 0) {
        left -= 1;
        const askedAtMs = performance.now();
        const lease = await lock.acquire({ waitMs });
        longestMs = Math.max(longestMs, performance.now() - askedAtMs);
        const seen = await counters.mget(names);
        lease.assertHeld();
        await counters.mset(
          names.flatMap((/** @type {string} */ name, /** @type {number} */ i) => [name, Number(seen[i]) + 1]),
        );
        await lease.release();
      }
    }
    await Promise.all(Array.from({ length: callers }, work));
    return longestMs;
  },
});
