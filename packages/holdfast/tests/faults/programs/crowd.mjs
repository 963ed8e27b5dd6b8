// @ts-check
/**
 * Many callers of one process that compete for one mutex. Each section increments a counter in Redis with a read and a
 * write on another connection, so only the mutex keeps the count right.
 */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, sharedClockMs } from "./serve.mjs";

const redis = new Redis({ port: args.port });
const counter = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

serve({
  async ready({ name }) {
    await holdfast.mutex(`warm:${name}`).run(async () => counter.ping());
  },

  /** Returns four numbers for each section: caller, token, begin and end on the shared clock. */
  async work({ name, counterKey, callers, startAtMs, forMs }) {
    const mutex = holdfast.mutex(name);
    /** @type {number[]} */
    const sections = [];
    const endAtMs = startAtMs + forMs;
    while (sharedClockMs() < startAtMs) await new Promise((resolve) => setTimeout(resolve, 1));
    /** @param {number} caller */
    async function work(caller) {
      while (sharedClockMs() < endAtMs) {
        const lease = await mutex.acquire({ waitMs: Infinity });
        const beginMs = sharedClockMs();
        await counter.set(counterKey, Number(await counter.get(counterKey)) + 1);
        sections.push(caller, lease.token, beginMs, sharedClockMs());
        await lease.release();
      }
    }
    await Promise.all(Array.from({ length: callers }, (_, caller) => work(caller)));
    return Float64Array.from(sections);
  },
});
