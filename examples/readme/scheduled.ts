/** A nightly report: every instance has the schedule, and one of them makes the report. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { runCoordinator } from "@holdfast/node-cron";
import { scheduled } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { readHistory } from "holdfast/admin";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const name = `nightly ${randomUUID()}`;

const reports: number[] = [];
async function report({ signal, fence }: { signal: AbortSignal; fence: number }) {
  signal.throwIfAborted();
  reports.push(fence);
  return { pages: 12 };
}

const nightly = scheduled(
  holdfast,
  name,
  (lease) => report({ signal: lease.signal, fence: lease.token }), // aborts before another run may start
  {
    everyMs: 86_400_000, // once a day: no second run within nine tenths of that
    maxHoldMs: 3_600_000, // after an hour, `signal` aborts and the lock is not renewed
    jitterMaxMs: 2_000, // spreads the runs over the hosts
    history: true,
  },
);

// The schedulers of three instances call this at 3:00: new Cron("0 3 * * *", nightly).
const fires = await Promise.all([nightly(), nightly(), nightly()]);
assert.deepEqual(
  fires.filter(({ outcome }) => outcome === "ran"),
  [{ outcome: "ran", value: { pages: 12 } }],
);
assert.equal(reports.length, 1);

const skipped: string[] = [];
const late = await nightly();
if (late.outcome === "refused") {
  skipped.push(`${late.reason}: ${late.holder?.host} since ${new Date(late.sinceAtMs ?? 0).toISOString()}`);
}
assert.match(skipped.join(), /^already-done: \S+ since 2/);
assert.equal(nightly.counts.skipped["already-done"], 3);

const [last] = await readHistory(holdfast, { name });
assert.equal(last?.outcome, "released");

// setRunCoordinator(coordinator), then schedule("0 3 * * *", report, { name: "nightly", distributed: true })
const coordinator = runCoordinator(holdfast, { name: `reports ${name}`, jitterMaxMs: 200, history: true });
assert.equal(await coordinator.shouldRun("nightly:2026-11-23T03:00:00.000Z", 30_000), true);
assert.equal(await coordinator.shouldRun("nightly:2026-11-23T03:00:00.000Z", 30_000), false);
await coordinator.onComplete("nightly:2026-11-23T03:00:00.000Z");

await holdfast.close();
redis.disconnect();
