/**
 * A job that cron starts on every host. One of them makes the report, and the others skip it.
 *
 *     npm start                        in this folder, after `npm run build` in the checkout
 *     0 3 * * *  node nightly.js       the line in the crontab of each host, with the REDIS_URL of all
 *
 * Without REDIS_URL, the locks are in this process, so that each start makes a report.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { embedded } from "@holdfast/embedded";
import { scheduled } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const { REDIS_URL } = process.env;
const redis = REDIS_URL === undefined ? undefined : new Redis(REDIS_URL);
const holdfast = createHoldfast(redis === undefined ? { store: embedded() } : { redis });

/** Stands for the work. The signal aborts if the lock is lost. */
async function report(signal: AbortSignal): Promise<number> {
  await sleep(50, undefined, { signal });
  return 12;
}

const nightly = scheduled(holdfast, "nightly-report", ({ signal }) => report(signal), {
  everyMs: 86_400_000, // a host whose clock is late does not make a second report
  maxHoldMs: 3_600_000, // after an hour, `signal` aborts and the lock is not renewed
});

const run = await nightly();
if (run.outcome === "ran") console.log(`made a report of ${run.value} pages`);
else console.log(`skipped (${run.reason})`);
// If the server did not reply, no host may have run: let cron report it.
if (run.outcome === "refused" && run.reason === "unavailable") process.exitCode = 1;

await holdfast.close();
redis?.disconnect();
