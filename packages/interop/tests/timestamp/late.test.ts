/** Changes that other clients make to a held lock, and how and when its holder notices and reacts. */

import { LeaseLostError } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { javaGetSet, phpLua, timestampLock } from "../../src/timestamp/index.js";
import { javaGetSetPeer } from "./peers.js";
import { eventually } from "./rows.js";
import { useScene } from "./scene.js";

const scene = useScene(javaGetSet, javaGetSetPeer);
const LONG_MS = 60_000;

const kinds = (): string[] => scene.told.map(({ what }) => what);

describe("a lock that another client has deleted", () => {
  test.each(["release", "extend"] as const)(
    "before its end is reported as deleted, and its holder loses the lease: found by %s",
    async (by) => {
      // With phpLua no background check finds the deletion first.
      const lock = timestampLock(scene.holdfast, scene.name, { ...phpLua, suffix: javaGetSet.suffix });
      const lease = await lock.acquire({ leaseMs: LONG_MS, renew: false });
      expect(await scene.redis.del(scene.key)).toBe(1);
      await expect(by === "release" ? lease.release() : lease.extend(LONG_MS)).rejects.toBeInstanceOf(LeaseLostError);
      expect(scene.told).toMatchObject([{ what: "deleted", owner: lease.owner }]);
      expect(lease.validForMs()).toBe(0);
    },
  );

  test("after its end is not reported because another client may have taken and released it", async () => {
    const lease = await scene.lock().acquire({ leaseMs: 100, renew: false });
    const record = `{${scene.key}}:holdfast:owner`;
    await vi.waitFor(() => expect(lease.signal.aborted).toBe(true), eventually);
    const [value = ""] = ((await scene.redis.get(record)) ?? "").split(" ");
    // From here on, a client whose clock is a second ahead may take the lock over.
    await vi.waitFor(async () => expect(await scene.nowMs()).toBeGreaterThan(Number(value) - 1_000), eventually);
    expect(await scene.redis.del(scene.key)).toBe(1);
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
    expect(kinds()).not.toContain("deleted");
  });
});

test("other Holdfast clients stay out while a holder may still work, whatever value replaced its own", async () => {
  // In phpLua no client overwrites the value of another, so any other value is a grant.
  const first = timestampLock(scene.holdfast, scene.name, phpLua);
  const lease = await first.acquire({ leaseMs: LONG_MS, renew: false });
  await scene.redis.set(first.key, Math.floor((await scene.nowMs()) / 1_000) - 5);
  expect(await first.tryAcquire(), "though that value is over").toBeNull();
  await expect(lease.extend(LONG_MS)).rejects.toBeInstanceOf(LeaseLostError);
});

describe("a client that comes too late to take the lock over", () => {
  test("is watched for until none can come, and its value is corrected each time", async () => {
    // The value is checked every third of the lock's lease. This holder's own lease is longer and is not renewed.
    const lease = await scene.lock({ leaseMs: 600 }).acquire({ leaseMs: LONG_MS, renew: false });
    const ours = await scene.redis.get(scene.key);
    for (let late = 1; late <= 3; late += 1) {
      const theirs = String(Math.floor(await scene.nowMs()) + 20_000 + late);
      await scene.redis.set(scene.key, theirs);
      await vi.waitFor(
        async () => expect(Number(await scene.redis.get(scene.key))).toBeGreaterThan(Number(theirs)),
        eventually,
      );
      await vi.waitFor(
        () => expect(scene.told.at(-1)).toMatchObject({ what: "overwritten", value: theirs }),
        eventually,
      );
    }
    expect(Number(await scene.redis.get(scene.key))).toBeGreaterThanOrEqual(Number(ours));
    expect(await lease.release()).toBe("released");
  });

  test("is watched for without a takeover too because it may have read a released lock", async () => {
    const lease = await scene.lock({ leaseMs: 600 }).acquire({ leaseMs: LONG_MS, renew: false });
    expect(kinds()).toEqual([]);
    await scene.redis.set(scene.key, String(Math.floor(await scene.nowMs()) + 20_000));
    await vi.waitFor(() => expect(kinds()).toEqual(["overwritten"]), eventually);
    expect(await lease.release()).toBe("released");
  });

  test("does not shorten the TTL of the fence", async () => {
    const hourMs = 3_600_000;
    const lease = await scene.lock().acquire({ leaseMs: hourMs, renew: false });
    await scene.redis.set(scene.key, String(Math.floor(await scene.nowMs()) + 20_000));
    await vi.waitFor(() => expect(kinds()).toEqual(["overwritten"]), eventually);
    expect(await scene.redis.pttl(`{${scene.key}}:holdfast:fence`)).toBeGreaterThan(hourMs);
    expect(await lease.release()).toBe("released");
  });
});
