/** Checks shared by all protocols with a deadline in the value. Each protocol numbers them in its own rows. */

import { LeaseLostError } from "holdfast";
import { expect, vi } from "vitest";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import type { DeadlineDialect, TimestampLock } from "../../src/timestamp/index.js";
import type { Scene } from "./scene.js";

/** Longer than any test. */
export const NEVER_MS = 600_000;
/** Long enough for the pauses of a waiter, or for the next second of a clock that counts seconds. */
export const eventually = { timeout: 15_000, interval: 10 };

/** The time in a value, in ms. */
export function endOf({ dialect }: Scene, value: string | null): number {
  return Math.floor(Number(value)) * (dialect.unit === "s" ? 1_000 : 1);
}

/** Writes a value of the other system that ended `agoMs` ago, and returns it. */
export async function expired(scene: Scene, agoMs = 5_000): Promise<string> {
  const unitMs = scene.dialect.unit === "s" ? 1_000 : 1;
  const value = `${Math.floor(((await scene.nowMs()) - agoMs) / unitMs)}`;
  await scene.redis.set(scene.key, value);
  return value;
}

/** Clock of a foreign client for which the Holdfast lease is over. */
export function later(lock: TimestampLock, { dialect }: Scene): { aheadMs: number } {
  expect(lock.key).not.toBe("");
  return { aheadMs: 3 * dialect.leaseMs + 10_000 };
}

/** A1, C1, D1. */
export async function keyHasAnExpiry(scene: Scene): Promise<void> {
  await scene.peer().tryLock();
  expect(await scene.redis.pttl(scene.key)).toBe(-1);
  await scene.redis.del(scene.key);

  await scene.lock().acquire();
  const leftMs = await scene.redis.pttl(scene.key);
  expect(leftMs).toBeGreaterThan(0);
  // The key must not expire before its value, or the lock would be free while the value says held.
  expect((await scene.nowMs()) + leftMs).toBeGreaterThanOrEqual(endOf(scene, await scene.redis.get(scene.key)));
}

/** A3, C2, D3: a foreign client that read the expired value before Holdfast comes too late. */
export async function overwrittenByALoser(scene: Scene): Promise<void> {
  // The offset keeps the late value different from the winner's. A clock ahead could write the same whole second.
  const clock = { aheadMs: scene.dialect.unit === "s" ? -1_000 : 1_000 };
  await expired(scene);
  const theirs = await scene.peer(clock).tryLockUpToTakeover();
  expect(await scene.peer().tryLock()).toBe(true);
  const winners = await scene.redis.get(scene.key);
  expect(await theirs.finish()).toBe(false);
  expect(await scene.redis.get(scene.key)).not.toBe(winners);

  await expired(scene);
  const late = await scene.peer(clock).tryLockUpToTakeover();
  const lease = await scene.lock().acquire();
  expect(scene.told).toMatchObject([{ what: "taken-over", owner: undefined }]);
  const ours = await scene.redis.get(scene.key);
  expect(await late.finish()).toBe(false);
  const overwritten = await scene.redis.get(scene.key);
  expect(overwritten).not.toBe(ours);
  // Holdfast checks the value on its own, long before the first renewal.
  await vi.waitFor(
    () => expect(scene.told.at(-1)).toMatchObject({ what: "overwritten", value: overwritten }),
    eventually,
  );
  expect(endOf(scene, await scene.redis.get(scene.key))).toBeGreaterThanOrEqual(endOf(scene, ours));
  expect(await scene.redis.pttl(scene.key)).toBeGreaterThan(0);
  expect(lease.validForMs()).toBeGreaterThan(0);
  expect(await scene.peer().tryLock()).toBe(false);
  expect(await lease.release()).toBe("released");
  expect(await scene.redis.exists(scene.key)).toBe(0);
}

/** 7.5 (3): a release leaves or deletes the value of a client that came too late. */
export async function overwrittenAtRelease(scene: Scene): Promise<void> {
  for (const overwritten of ["leave", "delete"] as const) {
    await expired(scene);
    const late = await scene.peer().tryLockUpToTakeover();
    const lease = await scene.lock({ overwritten }).acquire();
    await late.finish();
    const value = await scene.redis.get(scene.key);
    expect(await lease.release()).toBe("released");
    expect(scene.told.at(-1)).toMatchObject({ what: "overwritten", value, owner: lease.owner });
    expect(await scene.redis.get(scene.key)).toBe(overwritten === "leave" ? value : null);
  }
}

/** A4, C5, D4, first half: a late foreign release deletes any value. */
export async function theirLateReleaseIsALoss(scene: Scene): Promise<void> {
  const late = scene.peer();
  const next = scene.peer();
  await late.tryLock();
  await expired(scene);
  expect(await next.tryLock()).toBe(true);
  await late.unlock();
  expect(await scene.peer().tryLock()).toBe(true);
  await scene.redis.del(scene.key);

  await late.tryLock();
  await expired(scene);
  const lease = await scene.lock().acquire();
  await late.unlock();
  expect(await scene.redis.exists(scene.key)).toBe(0);
  // Another Holdfast client stays out until the holder has learned of the loss.
  expect(await scene.lock({}, "second").tryAcquire()).toBeNull();
  await expect(lease.extend(scene.dialect.leaseMs)).rejects.toBeInstanceOf(LeaseLostError);
  expect(lease.signal.aborted).toBe(true);
  expect(scene.told.at(-1)).toMatchObject({ what: "deleted", owner: lease.owner });
  expect(await scene.redis.exists(scene.key)).toBe(0);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  await (await scene.lock({}, "second").acquire()).release();
}

/** A4, C5, D4, second half: a late Holdfast release deletes only its own value. */
export async function ourLateReleaseDeletesNothing(scene: Scene): Promise<void> {
  const lock = scene.lock();
  const lease = await lock.acquire({ renew: false });
  expect(await scene.peer(later(lock, scene)).tryLock()).toBe(true);
  const theirs = await scene.redis.get(scene.key);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  expect(await scene.redis.get(scene.key)).toBe(theirs);
}

/** A5, B6, C12, D6: how far ahead a clock must be to take a live lock, and how the Holdfast holder notices. */
export async function clockAhead(scene: Scene): Promise<void> {
  const { leaseMs, paddingMs } = scene.dialect as DeadlineDialect;
  await scene.peer().tryLock();
  // More than the lease plus rounding.
  expect(await scene.peer({ aheadMs: leaseMs + paddingMs + 2_000 }).tryLock()).toBe(true);
  await scene.redis.del(scene.key);

  const lock = scene.lock();
  const lease = await lock.acquire();
  // Within the lease plus the allowed skew.
  expect(await scene.peer({ aheadMs: leaseMs + paddingMs }).tryLock()).toBe(false);
  const aheadMs = leaseMs + paddingMs + 5_000;
  expect(await scene.peer({ aheadMs }).tryLock()).toBe(true);
  await expect(lease.extend(leaseMs)).rejects.toBeInstanceOf(LeaseLostError);
  expect(lease.signal.aborted).toBe(true);
  expect(await scene.lock({}, "second").tryAcquire()).toBeNull();
  expect(scene.told.at(-1)).toMatchObject({ what: "clock-ahead", value: await scene.redis.get(scene.key) });
  expect(scene.told.at(-1)?.ms).toBeGreaterThan(0);
  expect(scene.told.at(-1)?.ms).toBeLessThanOrEqual(aheadMs);
}

/** A6, B9, D7, C14: two clients that write in the same unit of time write the same value. */
export async function sameMoment(scene: Scene): Promise<void> {
  const atMs = await scene.nowMs();
  const values = [];
  for (let i = 0; i < 2; i += 1) {
    await scene.peer({ atMs: Math.floor(atMs) }).tryLock();
    values.push(await scene.redis.get(scene.key));
    await scene.redis.del(scene.key);
  }
  expect(values[0]).toBe(values[1]);

  const { leaseMs } = scene.dialect;
  const first = await scene.lock().acquire({ renew: false });
  const ours = await scene.redis.get(scene.key);
  // Rounding never shortens the lease.
  expect(endOf(scene, ours)).toBeGreaterThanOrEqual(atMs + leaseMs);
  // A claim that the record does not name deletes nothing, even if the value matches.
  await scene.redis.set(`{${scene.key}}:holdfast:owner`, `${ours} 1700000000000 1 another/1/30000/1`);
  await expect(first.release()).rejects.toBeInstanceOf(LeaseLostError);
  expect(await scene.redis.get(scene.key)).toBe(ours);
}

/** A7, B8, C17, D9: work that is longer than the lease. */
export async function longWork(scene: Scene): Promise<void> {
  await scene.peer().tryLock();
  expect(await scene.peer(later(scene.lock(), scene)).tryLock()).toBe(true);
  await scene.redis.del(scene.key);

  await withLeaseInTime(async (leaseMs) => {
    await scene.redis.flushall();
    const lease = await scene.lock({ leaseMs }).acquire();
    const before = endOf(scene, await scene.redis.get(scene.key));
    await vi.waitFor(
      async () => expect(endOf(scene, await scene.redis.get(scene.key))).toBeGreaterThan(before),
      eventually,
    );
    expect(await lease.release()).toBe("released");
  });

  const lock = scene.lock({ leaseMs: 200 });
  const unrenewed = await lock.acquire({ renew: false });
  const endsAtMs = endOf(scene, await scene.redis.get(scene.key));
  await vi.waitFor(() => expect(unrenewed.signal.aborted).toBe(true), eventually);
  expect(unrenewed.validForMs()).toBe(0);
  // The lease ended before its value, so that clients with fast clocks do not overlap.
  expect(unrenewed.acquiredAt.getTime() + 200).toBeLessThan(endsAtMs);
}

/** C3, D2: a lock without a holder, left behind by a client that came too late to a deleted key. */
export async function ghost(scene: Scene): Promise<void> {
  await scene.peer().tryLock();
  await expired(scene);
  const waiter = await scene.peer().tryLockUpToTakeover();
  await scene.redis.del(scene.key);
  expect(await waiter.finish()).toBe(false);
  expect(await scene.redis.exists(scene.key)).toBe(1);
  expect(await scene.peer().tryLock()).toBe(false);

  const lock = scene.lock();
  expect(await lock.tryAcquire()).toBeNull();
  const value = await scene.redis.get(scene.key);
  expect((await lock.inspect()).holders).toMatchObject([{ owner: value, token: undefined }]);
  const waiting = lock.acquire({ waitMs: NEVER_MS });
  const over = await expired(scene);
  await (await waiting).release();
  expect(scene.told).toMatchObject([{ what: "taken-over", value: over, owner: undefined }]);
}

/** A Holdfast client that does not get the lock writes nothing. */
export async function nothingWrittenOnALoss(scene: Scene): Promise<void> {
  await scene.peer().tryLock();
  const value = await scene.redis.get(scene.key);
  const leftMs = await scene.redis.pttl(scene.key);
  expect(await scene.lock().tryAcquire()).toBeNull();
  await expect(scene.lock().acquire({ waitMs: 20 })).rejects.toMatchObject({ holder: { owner: value } });
  expect(await scene.redis.get(scene.key)).toBe(value);
  expect(await scene.redis.pttl(scene.key)).toBeLessThanOrEqual(leftMs);
  expect(await scene.redis.keys("*owner*")).toEqual([]);
}
