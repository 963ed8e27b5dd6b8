import { strict as assert } from "node:assert";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type DeadlineDialect, type PeerEvent, phpSetGet, timestampLock } from "@holdfast/interop/timestamp";
import { AcquireTimeoutError, createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
let stock = 3;

const shop = { ...phpSetGet, prefix: "shop_lock_" }; // the prefix of the PHP side

async function reserve(goods: string): Promise<number> {
  return await timestampLock(holdfast, goods, shop).run(async (lease) => {
    lease.assertHeld(); // throws if a renewal found that another client has deleted the lock
    stock -= 1;
    return stock;
  });
}

const patient = timestampLock(holdfast, "goods:301", shop, {
  attempts: 3, // in all
  retryDelayMs: 300, // before each further attempt, minus a random part
  retryJitterMs: 200,
  maxClockSkewMs: 2_000, // how far the other clocks may be off
});

const nightly: DeadlineDialect = {
  prefix: "job:",
  suffix: ":until",
  unit: "ms", // the unit of the number in the value
  leaseMs: 120_000, // the longest that the others write
  paddingMs: 0, // what they add to it
  takeoverWhen: "passed", // value < now; "reached": value <= now
  mark: "none", // or what their parser accepts: "fraction", "leading-zero"
  losersWrite: true, // GETSET, or SET … GET, outside of a script
};

const seen: string[] = [];
const onPeer = (message: unknown): void => {
  const { what, key, value, ms } = message as PeerEvent;
  seen.push(`${what} ${key} ${value} ${ms ?? ""}`);
};
subscribe("holdfast:peer", onPeer); // taken-over, overwritten, deleted, clock-ahead

assert.equal(await reserve("goods:300"), 2);

// The PHP side holds the lock: SETNX with the time at which it ends.
await redis.setnx("shop_lock_goods:301", Math.floor(Date.now() / 1_000) + 30);
await assert.rejects(patient.acquire(), AcquireTimeoutError);

// The PHP side has crashed, and the key has no expiry.
await redis.set("shop_lock_goods:301", Math.floor(Date.now() / 1_000) - 5);
const lease = await patient.acquire();
assert.match(seen.at(-1) ?? "", /^taken-over shop_lock_goods:301 \d+ \d+$/);
assert.equal(await lease.release(), "released");

const canary = timestampLock(holdfast, "canary", nightly);
assert.equal(canary.key, "job:canary:until");
assert.deepEqual((await canary.inspect()).holders, []); // unless the other side holds it under that key

unsubscribe("holdfast:peer", onPeer);
await holdfast.close();
redis.disconnect();
