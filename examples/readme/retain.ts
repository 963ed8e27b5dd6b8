import { strict as assert } from "node:assert";
import { createHoldfast } from "holdfast";
import { retain } from "holdfast/retain";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const order = holdfast.mutex("order:42", { retain: retain({ forMs: 2_000 }) });

const first = await order.run(async (lease) => lease.token);
// Only the first of these sends requests.
const second = await order.run(async (lease) => lease.token);
assert.ok(second > first);

const other = createHoldfast({ redis });
await other.mutex("order:42").run(async (lease) => assert.ok(lease.token > second));
await other.close();

await holdfast.close();
redis.disconnect();
