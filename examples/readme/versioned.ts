/** Limits that several processes change and observe. No process overwrites a change that it has not seen. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { ConflictError, versioned } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const tenant = randomUUID();

interface Limits {
  rps: number;
}
const limits = versioned<Limits>(holdfast, `limits:${tenant}`);

// Version 0: write only if there is no value yet.
await limits.compareAndSet(0, { rps: 100 });

const { value, version } = await limits.get();
assert.deepEqual(value, { rps: 100 });
const first = await limits.compareAndSet(version, { rps: 200 });
const second = await limits.compareAndSet(version, { rps: 300 });
assert.equal(first.ok, true);
assert.deepEqual(second, { ok: false, value: { rps: 200 }, version: first.version }); // a result, not an error

// After a conflict, the function runs again with the current value.
await Promise.all(
  Array.from({ length: 10 }, () =>
    limits.update((old) => ({ rps: (old?.rps ?? 0) + 1 }), {
      attemptsMax: 100,
      promoteAfter: 3, // after three conflicts in a row, continue under the mutex with that name
    }),
  ),
);
assert.equal((await limits.get()).value?.rps, 210);

// Yields the current value first, then each change. Of several quick changes, it may yield only the last.
const controller = new AbortController();
const applied: number[] = [];
const following = (async () => {
  for await (const { value: now } of limits.watch({ signal: controller.signal })) {
    if (now !== undefined) applied.push(now.rps);
    if (now === undefined) break; // deleted
  }
})();
await limits.update(() => ({ rps: 500 }));
await limits.delete();
await following;
assert.equal(applied.includes(100), false);

// A version is never used again, even if the value is deleted and created again.
assert.equal((await limits.compareAndSet(version, { rps: 1 })).ok, false);
assert.equal((await limits.compareAndSet(0, { rps: 1 })).ok, false);

const contended = limits.update(
  async () => {
    await limits.update(() => ({ rps: 7 })); // another writer is always faster
    return { rps: 8 };
  },
  { attemptsMax: 2 },
);
await assert.rejects(contended, (error) => error instanceof ConflictError && error.attempts === 2);

await holdfast.close();
redis.disconnect();
