// @ts-check
/** A host with a wrong clock that calls many scheduled jobs by a timetable and records the outcome of each call. */
import { subscribe } from "node:diagnostics_channel";
import { scheduled } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "../../../holdfast/tests/faults/programs/serve.mjs";
import { realMs, setClock } from "./wrong-clock.mjs";

setClock(args.offsetMs);
const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis, commandTimeoutMs: 60_000 });

/** Server time of the last call of each job. @type {Map<string, number>} */
const calledAtMs = new Map();
for (const channel of ["holdfast:run:started", "holdfast:run:skipped"]) {
  subscribe(channel, (message) => {
    const { lockName, tick } = /** @type {any} */ (message);
    calledAtMs.set(lockName, Date.parse(tick));
  });
}

serve({
  /** Connects and loads the scripts into the server. */
  async ready() {
    await scheduled(holdfast, `warm:${process.pid}`, () => {}, { everyMs: 1_000 })();
  },

  /**
   * Calls one job per tick in rotation. This host calls each of them `shiftMs` early or late.
   *
   * @param {{ jobs: string[], ticks: number, tickMs: number, startAtMs: number, shiftMs: number }} input
   */
  async play({ jobs, ticks, tickMs, startAtMs, shiftMs }) {
    const everyMs = jobs.length * tickMs;
    /** @param {number} tick */
    const call = async (tick) => {
      const job = jobs[tick % jobs.length] ?? "";
      const start = async (/** @type {import("holdfast").Lease} */ { token }) => {
        await redis.rpush(`${job}:starts`, tick);
        return token;
      };
      await new Promise((resolve) => setTimeout(resolve, startAtMs + tick * tickMs + shiftMs - realMs()));
      // A long lease, so that a slow holder does not count as dead.
      const result = await scheduled(holdfast, job, start, { everyMs, leaseMs: 60_000 })();
      // The server uses the clock of this machine. Its time is rounded down, so add one.
      const endedAtMs = realMs() + 1;
      return { job, tick, atMs: calledAtMs.get(job), endedAtMs, result: { ...result, error: undefined } };
    };
    return await Promise.all(Array.from({ length: ticks }, (_, tick) => call(tick)));
  },
});
