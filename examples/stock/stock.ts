/**
 * Sells a hundred items to a thousand buyers in four processes: without a lock, with a lock, and with a guarded
 * counter. Then once more with the counter, while each process is killed in the middle and another one repeats its
 * orders.
 *
 * Needs a Redis (REDIS_URL).
 */
import { strict as assert } from "node:assert";
import process from "node:process";
import { hold } from "./sale.js";

const SIZE = { items: 100, buyers: 1_000, processes: 4 };
const redisUrl = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";

process.stdout.write(`stock: ${SIZE.items} items, ${SIZE.buyers} buyers in ${SIZE.processes} processes\n`);
for (const way of ["unlocked", "locked", "guarded"] as const) {
  const { sold, numbers, left } = await hold(way, redisUrl, SIZE);
  process.stdout.write(`stock: ${way.padEnd(8)} ${sold} sold, ${left} left\n`);
  assert.equal(numbers, sold, "no two orders have the same number");
  if (way === "unlocked") assert(sold > SIZE.items, "read, then set, and somebody comes in between");
  else assert.deepEqual([sold, left], [SIZE.items, 0]);
}
const { sold, numbers, left, killed } = await hold("guarded", redisUrl, { ...SIZE, withKills: true });
process.stdout.write(`stock: guarded  ${sold} sold, ${left} left, with ${killed} processes killed on the way\n`);
assert.equal(numbers, sold, "no two orders have the same number");
assert.deepEqual([sold, left, killed], [SIZE.items, 0, SIZE.processes]);
