/** Unique ids from the time, a worker number and a count. */
import { strict as assert } from "node:assert";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { SlotsTakenError, workerSlot } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const ids = new Set<bigint>();
await using worker = await workerSlot(holdfast, "snowflake", {
  count: 1024, // numbers 0 to 1023
  leaseMs: 60_000, // how long a number may be used after the last renewal
  restMs: 30_000, // how long the number of a crashed worker rests after that
  waitMs: 5_000,
});

let lastMs = worker.notBeforeAtMs; // no earlier holder of the number has made a later id
let count = 4_095;
function nextId(): bigint | undefined {
  const nowMs = Date.now();
  worker.assertHeld(); // for each id, after reading the clock; needs no I/O, and is right even after a pause
  if (nowMs < lastMs || (nowMs === lastMs && count === 4_095)) return undefined; // try again in the next millisecond
  count = nowMs === lastMs ? count + 1 : 0;
  lastMs = nowMs;
  return (BigInt(nowMs) << 22n) | BigInt((worker.number << 12) | count);
}

while (ids.size < 1_000) {
  const id = nextId();
  if (id === undefined) await pause(1);
  else assert.equal(ids.size + 1, ids.add(id).size);
}
await worker.release();

// A released number is free immediately, and its next holder starts after the last id of the previous one.
const next = await workerSlot(holdfast, "snowflake", { count: 1024 });
assert.equal(next.number, 0);
assert.ok([...ids].every((id) => Number(id >> 22n) <= next.notBeforeAtMs));

const only = await workerSlot(holdfast, "one worker", { count: 1, label: "the first" });
const refused = await workerSlot(holdfast, "one worker", { count: 1, waitMs: 0 }).catch((error: unknown) => error);
assert.ok(refused instanceof SlotsTakenError);
assert.deepEqual(
  refused.holders.map(({ label, slots }) => [label, slots]),
  [["the first", [only.number]]],
);

await holdfast.close();
redis.disconnect();
