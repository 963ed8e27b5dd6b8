/** Group B: renewal and loss. README.md lists the rows that are tested elsewhere. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, until } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("B4: a server error in a renewal crashes nothing, and aborts the holder's signal", async () => {
  const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS });
  await scene.redis.multi().del(scene.key(":fence")).rpush(scene.key(":fence"), "no token").exec();
  await until(() => lease.signal.aborted, "the signal to abort");
  expect(lease.signal.reason).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "expired" });
  await lease.release().catch(() => {});
  await scene.redis.del(scene.key(":fence"));
  await (await scene.rival.acquire({ waitMs: LONG_MS })).release();
});

test("B7: an extension is one script call, keeps milliseconds, and reports a loss", async () => {
  const lease = await scene.lock.acquire({ leaseMs: LONG_MS, renew: false });
  // The first lease of this length takes extra work because the server records the length.
  await lease.extend(2 * LONG_MS + 567);
  const counted = await scene.count();
  await lease.extend(2 * LONG_MS + 567);
  expect((await counted()).scripts).toBe(1);
  const left = await scene.redis.pttl(scene.key());
  expect(left).toBeGreaterThan(2 * LONG_MS - 1_000);
  expect(left).toBeLessThanOrEqual(2 * LONG_MS + 567);
  // An extension also works in the last second of the lease.
  await scene.redis.pexpire(scene.key(), 900);
  await lease.extend(2 * LONG_MS);
  expect(await scene.redis.pttl(scene.key())).toBeGreaterThan(LONG_MS);
  await scene.redis.del(scene.key());
  await expect(lease.extend(LONG_MS)).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
  expect(lease.signal.aborted).toBe(true);
});

test("B10: no option creates a key without an expiry", async () => {
  const leases = [
    await scene.lock.acquire({ renew: false }),
    await scene.holdfast.mutex(`${scene.name}:year`).acquire({ leaseMs: 31_536_000_000 }),
    await scene.holdfast.mutex(`${scene.name}:hold`).acquire({ maxHoldMs: Infinity }),
    await scene.holdfast.mutex(`${scene.name}:mapped`, { key: `legacy:${scene.name}` }).acquire(),
  ];
  const controller = new AbortController();
  const waiting = scene.rival.acquire({ waitMs: Infinity, signal: controller.signal }).catch(() => null);
  await until(async () => (await scene.lock.inspect()).waiterCount === 1, "the waiter to queue");
  const keys = await scene.redis.keys("*");
  expect(keys.filter((key) => key.includes(scene.name)).length).toBeGreaterThanOrEqual(9);
  for (const key of keys) expect(await scene.redis.pttl(key), key).toBeGreaterThan(0);
  controller.abort();
  await waiting;
  for (const lease of leases) await lease.release();
});
