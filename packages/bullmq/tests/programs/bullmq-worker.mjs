// @ts-check
/** A BullMQ worker in its own process. */

import { withLock } from "@holdfast/bullmq";
import { Worker } from "bullmq";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const jobs = new Redis({ port: args.port, maxRetriesPerRequest: null });
const holdfast = createHoldfast({ redis });

let finish = () => {};
/** @type {Promise<string>} */
const finished = new Promise((resolve) => {
  finish = () => resolve("late");
});
/** @type {(end: object) => void} */
let report = () => {};
const reported = new Promise((resolve) => {
  report = resolve;
});

serve({
  /** @param {{ queueName: string, key: string, leaseMs: number }} input */
  work({ queueName, key, leaseMs }) {
    const run = withLock(
      holdfast,
      () => key,
      async () => {
        await tell("began");
        return await finished;
      },
      { leaseMs },
    );
    // Reports the outcome directly because BullMQ emits no event for a job that stalled.
    /** @type {typeof run} */
    const told = async (job, token, signal) => {
      try {
        const value = await run(job, token, signal);
        report({ value });
        return value;
      } catch (error) {
        if (error instanceof Error) report({ error: error.name, value: "value" in error ? error.value : undefined });
        throw error;
      }
    };
    const worker = new Worker(queueName, told, { connection: /** @type {any} */ (jobs), lockDuration: 300 });
    worker.on("error", () => {});
  },

  async finish() {
    finish();
    return await reported;
  },
});
