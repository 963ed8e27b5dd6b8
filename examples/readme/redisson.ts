import { strict as assert } from "node:assert";
import { redisson } from "@holdfast/interop/redisson";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const shipped: string[] = [];
const fences: number[] = [];

const holdfast = createHoldfast({ redis });
const locks = redisson(holdfast, { nameMapper: (name) => `shop:${name}` });

// getLock("order:42").lock()
await locks.lock("order:42").run(async (lease) => {
  await ship({ signal: lease.signal }); // aborted when the lock is lost
});

const turn = await locks.fairLock("press").acquire({ waitMs: 60_000 }); // in turn, together with Java
await turn.release();
const maybe = await locks.spinLock("cache").tryAcquire(); // null if it is held
await maybe?.release();

const { read, write } = locks.readWriteLock("catalog");
const writer = await write.acquire();
const reader = await writer.downgrade(); // nobody writes in between
await reader.release();

await locks.multiLock(["account:1", "account:2"]).run(() => transfer());
await locks.fencedLock("ledger").run((lease) => book({ fence: lease.token }));

async function ship({ signal }: { signal: AbortSignal }): Promise<void> {
  signal.throwIfAborted();
  shipped.push("order:42");
}

async function transfer(): Promise<void> {
  assert.equal(await locks.lock("account:2").tryAcquire(), null);
}

async function book({ fence }: { fence: number }): Promise<void> {
  fences.push(fence);
}

assert.deepEqual(shipped, ["order:42"]);
assert.ok((fences[0] ?? 0) > 0);
assert.equal(await read.tryAcquire().then((lease) => lease?.release()), "released");
await holdfast.close();
redis.disconnect();
