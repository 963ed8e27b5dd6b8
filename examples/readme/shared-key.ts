import { strict as assert } from "node:assert";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const stock = holdfast.mutex("stock", { key: "legacy:stock", recheckMs: 200 });

await stock.run(async () => {
  assert.equal(await redis.set("legacy:stock", "a script", "PX", 30_000, "NX"), null);
});

assert.equal(await redis.set("legacy:stock", "a script", "PX", 30_000, "NX"), "OK");
assert.equal(await stock.tryAcquire(), null);
const waiting = stock.acquire();
await redis.del("legacy:stock"); // if another client may own it by now, compare its value first
await (await waiting).release();

await holdfast.close();
redis.disconnect();
