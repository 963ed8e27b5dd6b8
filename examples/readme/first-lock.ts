import { strict as assert } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";
import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const receipts = new Map<string, string>(); // stands for your database
let charges = 0;

async function pay(orderId: string): Promise<string> {
  return await holdfast.mutex(`order:${orderId}`).run((lease) => settle(orderId, lease), { waitMs: 5_000 });
}

async function settle(orderId: string, lease: Lease): Promise<string> {
  const earlier = receipts.get(orderId);
  if (earlier !== undefined) return earlier; // the customer pressed refresh, and gets the first result
  const receipt = await charge(orderId, lease.signal); // the signal aborts when the lease is lost
  lease.assertHeld(); // throws if it was lost meanwhile
  receipts.set(orderId, receipt);
  return receipt;
}

/** Stands for a payment gateway: slow, and it can be told to stop. */
async function charge(orderId: string, signal: AbortSignal): Promise<string> {
  await sleep(50, undefined, { signal });
  charges += 1;
  return `receipt ${charges} for order ${orderId}`;
}

const shown = await Promise.all([pay("42"), pay("42"), pay("42")]);
assert.equal(charges, 1);
assert.deepEqual(new Set(shown), new Set(["receipt 1 for order 42"]));

await holdfast.close(); // gives back what is held, and closes what Holdfast opened
redis.disconnect(); // your client stays yours
