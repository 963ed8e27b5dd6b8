/** A stock that never becomes negative, without a lock. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { CounterRequestError, counter } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const item = randomUUID();
const delivery = { id: randomUUID(), items: 3 };
const order = { id: randomUUID(), items: 2 };

const stock = counter(holdfast, `stock:${item}`, { min: 0 });
await stock.put(delivery.items, { requestId: delivery.id });

const left = await stock.take(order.items, { requestId: order.id }); // the remaining stock; null if there was too little, and then nothing is taken
assert.equal(left, 1);

// After a lost reply or a restart, repeat the request: it gets the same reply and takes nothing more.
assert.equal(await stock.take(order.items, { requestId: order.id }), 1);
assert.equal(await stock.take(2, { requestId: "another order" }), null);

// Putting an item back is a separate request.
assert.equal(await stock.put(order.items, { requestId: `${order.id}:cancel` }), 3);
await assert.rejects(stock.put(order.items, { requestId: order.id }), CounterRequestError);
assert.equal(await stock.read(), 3);

await holdfast.close();
redis.disconnect();
