// @ts-check
/** An instance of a service with scheduled jobs in a separate process. */

import { scheduled } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis, commandTimeoutMs: 20_000 });

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

serve({
  /**
   * Calls the job once. It reports that it has begun, and works for `workMs` even if its signal aborts.
   *
   * @param {{ name: string, workMs: number, options: import("@holdfast/recipes").ScheduledOptions }} input
   */
  async call({ name, workMs, options }) {
    const job = scheduled(
      holdfast,
      name,
      async (lease) => {
        await redis.rpush(`${name}:runs`, `${process.pid} ${lease.token}`);
        await tell("began");
        await sleep(workMs);
        return "done";
      },
      options,
    );
    try {
      return await job();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { error: error.name, value: "value" in error ? error.value : undefined };
    }
  },

  /**
   * Calls many jobs, each `callers` times at the same time.
   *
   * @param {{ names: string[], callers: number, everyMs: number }} input
   */
  async many({ names, callers, everyMs }) {
    const calls = names.flatMap((name) => {
      const job = scheduled(holdfast, name, () => redis.incr(`${name}:runs`), { everyMs, jitterMaxMs: 5 });
      return Array.from({ length: callers }, job);
    });
    return (await Promise.all(calls)).map((result) => (result.outcome === "ran" ? "ran" : result.reason));
  },

  /** Runs a job and closes everything. The process then exits unless something is left behind. */
  async finish({ name }) {
    const job = scheduled(holdfast, name, () => {}, { everyMs: 60_000, minHoldMs: 5_000, history: true });
    const { outcome } = await job();
    await holdfast.close();
    redis.disconnect();
    setImmediate(() => process.disconnect?.());
    return outcome;
  },
});
