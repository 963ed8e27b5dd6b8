import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { createHoldfast } from "holdfast";
import { surveyAll } from "holdfast/admin";
import { serverTimeMs, startOfPeriod } from "holdfast/period-marker";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const shown: string[] = [];
const shop = randomUUID();
const nightly = holdfast.mutex(`nightly:${shop}`);
let reports = 0;

await holdfast.mutex(`${shop}:order:42`).run(() => list());

async function list(): Promise<void> {
  for (const lock of (await surveyAll(holdfast, { pattern: `${shop}:order:*` })).locks) {
    show(lock.kind, lock.name, lock.state, lock.holders[0]?.host, lock.waiterCount);
  }
}

function show(kind: string, name: string, state: string, host: string | undefined, waiterCount: number): void {
  shown.push(`${kind} ${name} ${state} ${waiterCount}`);
  assert.ok(host === undefined || host.length > 0);
}

async function everyNight(): Promise<string> {
  const readAtMs = await serverTimeMs(holdfast, nightly.name); // before waiting
  return await nightly.run(async (lease) => {
    const start = await startOfPeriod(holdfast, lease, { every: 86_400_000, readAtMs }); // or "day", by the calendar
    if (start.outcome === "already") return `ran at ${new Date(start.lastRun.startedAtMs).toISOString()}`;
    await report();
    await start.end(0);
    return "ran now";
  });
}

async function report(): Promise<void> {
  reports += 1;
}

assert.deepEqual(shown, [`mutex ${shop}:order:42 held 0`]);
assert.equal(await everyNight(), "ran now");
assert.match(await everyNight(), /^ran at /);
assert.equal(reports, 1);
await holdfast.close();
redis.disconnect();
