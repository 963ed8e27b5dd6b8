/** What is the same for every protocol with a deadline in the value; the rows of each name these by their own numbers. */
import { expect, vi } from "vitest";
import { LeaseLostError } from "../../../src/index.js";
import type { DeadlineDialect, TimestampLock } from "../../../src/interop/timestamp/index.js";
import { withLeaseInTime } from "../../../src/testing/delays.js";
import type { Scene } from "./scene.js";

/** Longer than any test. */
export const NEVER_MS = 600_000;
/** Time enough for whatever takes the pauses of a waiter, or a second of a clock that counts seconds. */
export const eventually = { timeout: 15_000, interval: 10 };

/** The time in a value, in ms. */
export function endOf({ dialect }: Scene, value: string | null): number {
  return Math.floor(Number(value)) * (dialect.unit === "s" ? 1_000 : 1);
}

/** A value of the other system that was over so long ago, and its digits. */
export async function expired(scene: Scene, agoMs = 5_000): Promise<string> {
  const unitMs = scene.dialect.unit === "s" ? 1_000 : 1;
  const value = `${Math.floor(((await scene.nowMs()) - agoMs) / unitMs)}`;
  await scene.redis.set(scene.key, value);
  return value;
}

/** When time has passed: a client of theirs for which our lease is over. */
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
  // Never before its value: an expiry that comes first would make the lock free while the value says held.
  expect((await scene.nowMs()) + leftMs).toBeGreaterThanOrEqual(endOf(scene, await scene.redis.get(scene.key)));
}

/** A3, C2, D3: a client of theirs that read the expired value before us comes too late. */
export async function overwrittenByALoser(scene: Scene): Promise<void> {
  // Never the value of the winner, however late that one is: a second behind in whole seconds, where ahead it may be the next.
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
  // Looked after by itself, long before the first renewal.
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

/** 7.5 (3): what to do with the value of one that came too late, when we are done. */
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

/** A4, C5, D4, first half: their late release deletes whatever is there. */
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
  // One of ours does not go in beside a holder that has yet to hear of it.
  expect(await scene.lock({}, "second").tryAcquire()).toBeNull();
  await expect(lease.extend(scene.dialect.leaseMs)).rejects.toBeInstanceOf(LeaseLostError);
  expect(lease.signal.aborted).toBe(true);
  expect(scene.told.at(-1)).toMatchObject({ what: "deleted", owner: lease.owner });
  expect(await scene.redis.exists(scene.key)).toBe(0);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  await (await scene.lock({}, "second").acquire()).release();
}

/** A4, C5, D4, second half: ours deletes nothing but its own. */
export async function ourLateReleaseDeletesNothing(scene: Scene): Promise<void> {
  const lock = scene.lock();
  const lease = await lock.acquire({ renew: false });
  expect(await scene.peer(later(lock, scene)).tryLock()).toBe(true);
  const theirs = await scene.redis.get(scene.key);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  expect(await scene.redis.get(scene.key)).toBe(theirs);
}

/** A5, B6, C12, D6: how far ahead a clock must be to take a live lock, and what our holder then hears. */
export async function clockAhead(scene: Scene): Promise<void> {
  const { leaseMs, paddingMs } = scene.dialect as DeadlineDialect;
  await scene.peer().tryLock();
  // More than the lease, and more than rounding.
  expect(await scene.peer({ aheadMs: leaseMs + paddingMs + 2_000 }).tryLock()).toBe(true);
  await scene.redis.del(scene.key);

  const lock = scene.lock();
  const lease = await lock.acquire();
  // Within the lease and the skew that is allowed for.
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

/** A6, B9, D7, C14: what is written twice in one unit of time says nothing of who wrote it. */
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
  // Rounding never shortens it.
  expect(endOf(scene, ours)).toBeGreaterThanOrEqual(atMs + leaseMs);
  // Whatever the value is: a claim that the record does not name deletes nothing.
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
  // What it was told to rely on was over before its value; see the row on clocks for by how much.
  expect(unrenewed.acquiredAt.getTime() + 200).toBeLessThan(endsAtMs);
}

/** C3, D2: a lock that nobody holds, left behind by one that came too late to a key that was gone. */
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

/** Nothing is written by whoever does not get the lock. */
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
