/** Numbers and limits without a lock: one atomic step each. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const shop = randomUUID();

// A unique number: no lock, one command.
async function nextOrderNumber(): Promise<number> {
  return await redis.incr(`shop:${shop}:orders`);
}

// A limit for each minute, by the caller's clock. Each minute has its own key.
async function mayEnter(user: string, most: number): Promise<boolean> {
  const key = `shop:${shop}:requests:${user}:${Math.floor(Date.now() / 60_000)}`;
  const answers = await redis.multi().incr(key).pexpire(key, 120_000).exec();
  return Number(answers?.[0]?.[1]) <= most;
}

const numbers = await Promise.all(Array.from({ length: 1_000 }, nextOrderNumber));
assert.equal(new Set(numbers).size, 1_000);
assert.equal(Math.max(...numbers), 1_000);

const minute = Math.floor(Date.now() / 60_000);
const entered = await Promise.all(Array.from({ length: 50 }, () => mayEnter("anna", 10)));
const count = entered.filter((may) => may).length;
// If a new minute started during the calls, both minutes may have admitted ten.
assert(minute === Math.floor(Date.now() / 60_000) ? count === 10 : count <= 20, `${count} came in`);

redis.disconnect();
