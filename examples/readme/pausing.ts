/** An operator pauses a lock: no deploy can start while the database is moved, even if it already waits. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createHoldfast, LeaseLostError, PausedError } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const elsewhere = createHoldfast({ redis });
const name = `deploy:${randomUUID()}`;

// A deploy is running, and another one waits for it.
const running = await elsewhere.mutex(name).acquire({ label: "release 4.2" });
const next = elsewhere.mutex(name).acquire({ label: "release 4.3", waitMs: 60_000 });
while ((await holdfast.mutex(name).inspect()).waiterCount === 0) await sleep(5);

const { outcome, pause, holders } = await holdfast.pause(name, {
  label: "db maintenance",
  by: "ana",
  untilAtMs: Date.now() + 7_200_000, // if absent: until someone resumes it
});
const [holder] = holders; // continues until it releases: a pause does not stop holders

assert.deepEqual([outcome, pause.by, holder?.label], ["paused", "ana", "release 4.2"]);
running.assertHeld();
const again = await elsewhere.pause(name, { label: "another reason", by: "bo" });
assert.deepEqual([again.outcome, again.pause.label], ["already-paused", "db maintenance"]);

const lost = new Promise((resolve) => running.signal.addEventListener("abort", resolve));

// If you cannot wait, take the lock from that deploy. Its signal aborts; a later holder is not affected.
if (holder?.token !== undefined) {
  await holdfast.mutex(name).forceRelease({ token: holder.token, by: "ana", reason: "moving the database now" });
}

await lost;
await assert.rejects(running.release(), LeaseLostError);
await assert.rejects(
  elsewhere.mutex(name).acquire(),
  (error) => error instanceof PausedError && error.by === "ana" && error.label === "db maintenance",
);
assert.equal(await elsewhere.mutex(name).tryAcquire(), null);
const seen = await holdfast.mutex(name).inspect();
assert.deepEqual([seen.holders, seen.pause?.owner, seen.waiterCount], [[], pause.owner, 1]);
const inNobodysWay = await elsewhere
  .mutex(name)
  .acquire({ throughPause: true, waitMs: 50 })
  .catch((error) => error);
assert.equal(inNobodysWay.pause.by, "ana");

const ended = await holdfast.resume(name, { by: "ana", pause: pause.owner }); // that pause, and no later one

assert.deepEqual([ended.outcome, "waiterCount" in ended && ended.waiterCount], ["resumed", 1]);
await (await next).release(); // it kept its place in the queue
assert.equal((await holdfast.resume(name, { by: "ana" })).outcome, "not-paused");

await Promise.all([holdfast.close(), elsewhere.close()]);
redis.disconnect();
