import { strict as assert } from "node:assert";
import { redisson } from "@holdfast/interop/redisson";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const handed: (string | undefined)[] = [];

const { semaphore, permitExpirableSemaphore, countDownLatch } = redisson(holdfast);

// Java has set these.
await semaphore("connections").trySetPermits(4);
await permitExpirableSemaphore("seats").trySetPermits(1);
await countDownLatch("loaded").trySetCount(1);

await semaphore("connections").run(work, { permits: 2, waitMs: 5_000 });

const lease = await permitExpirableSemaphore("seats").acquire();
await hand(lease.permitIds[0]); // Java may release it by this id
await lease.release();

const loaded = countDownLatch("loaded").await({ waitMs: 60_000 });

async function work(): Promise<void> {
  assert.equal(await semaphore("connections").availablePermits(), 2);
}

async function hand(id: string | undefined): Promise<void> {
  handed.push(id);
}

await countDownLatch("loaded").countDown();
await loaded;
assert.match(handed[0] ?? "", /^[0-9a-f]{32}$/);
await holdfast.close();
redis.disconnect();
