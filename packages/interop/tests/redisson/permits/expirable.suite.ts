/** Redisson's semaphore whose permits have ids and leases, shared with a Java peer. */
import { randomUUID } from "node:crypto";
import { LeaseLostError } from "holdfast";
import { expect, test } from "vitest";
import { withLeaseInTime } from "../../../../holdfast/src/testing/delays.js";
import { BY_MESSAGE, contend, type TwoSides, untilHeard, type Worker } from "./peer.js";

const NEVER = 922_337_203_685_477;
/** Longer than any test. */
const LONG_MS = 600_000;

/** All held permits: id and end of the lease. */
async function held({ redis }: Pick<TwoSides, "redis">, timeout: string): Promise<Map<string, number>> {
  const flat = await redis.zrangeBuffer(timeout, "0", "-1", "WITHSCORES");
  const entries = new Map<string, number>();
  for (let i = 0; i < flat.length; i += 2) {
    expect(flat[i]).toHaveLength(16);
    expect(String(flat[i + 1])).toMatch(/^\d+$/);
    entries.set(flat[i]?.toString("hex") ?? "", Number(flat[i + 1]));
  }
  return entries;
}

/** @param sides  called when a test runs */
export function expirableSuite(sides: () => TwoSides): void {
  test.each([
    ["a name without braces", (id: string) => id, (id: string) => `{${id}}:timeout`],
    ["a hash tag at the end", (id: string) => `${id}:{42}`, (id: string) => `${id}:{42}:timeout`],
    ["a hash tag in front", (id: string) => `{${id}}x`, (id: string) => `{${id}}x:timeout`],
  ])("permits are stored as 16 raw bytes with an integer deadline: %s", async (_, nameOf, timeoutOf) => {
    const { peer, redis, process } = sides();
    const name = nameOf(randomUUID());
    const timeout = timeoutOf(/[\da-f-]{36}/.exec(name)?.[0] ?? "");
    const semaphore = process().redisson.permitExpirableSemaphore(name);

    expect(await semaphore.trySetPermits(4)).toBe(true);
    expect(await peer.call("permit.trySetPermits", { name, permits: 9 })).toBe(false);
    const before = Date.now();
    const lease = await semaphore.acquire({ permits: 2, leaseMs: LONG_MS });
    const theirs = await peer.call<string>("permit.tryAcquire", { name, leaseMs: LONG_MS });
    const endless = await peer.call<string>("permit.acquire", { name });
    const after = Date.now();
    const entries = await held({ redis }, timeout);
    expect([...entries.keys()].sort()).toEqual([...lease.permitIds, theirs, endless].sort());
    expect(lease.owner).toBe(lease.permitIds[0]);
    for (const id of [...lease.permitIds, theirs]) {
      expect(entries.get(id)).toBeGreaterThanOrEqual(before + LONG_MS - 1);
      expect(entries.get(id)).toBeLessThanOrEqual(after + LONG_MS + 1);
    }
    expect(entries.get(endless)).toBe(NEVER);
    expect(await redis.get(name)).toBe("0");
    expect(await semaphore.getLeaseTime(endless)).toBe(Infinity);
    expect(await semaphore.getLeaseTime(theirs)).toBeGreaterThan(LONG_MS / 2);
    expect((await semaphore.inspect()).holders.map(({ owner }) => owner).sort()).toEqual([...entries.keys()].sort());
    expect(await lease.release()).toBe("released");
    expect([...(await held({ redis }, timeout)).keys()].sort()).toEqual([theirs, endless].sort());
  });

  test("a permit id acquired on one side can be released on the other", async () => {
    const { peer, redis, process, heard } = sides();
    const name = randomUUID();
    const channel = `redisson_sc:{${name}}`;
    const semaphore = process().redisson.permitExpirableSemaphore(name);
    await peer.call("permit.trySetPermits", { name, permits: 4 });
    await heard();
    const theirs = await peer.call<string>("permit.tryAcquire", { name, leaseMs: LONG_MS });
    expect(await semaphore.tryRelease(theirs.toUpperCase())).toBe("released");
    expect(await semaphore.tryRelease(theirs)).toBe("not-held");
    expect(await heard()).toEqual([`${channel} 4`]);

    const lease = await semaphore.acquire({ leaseMs: LONG_MS });
    expect(await peer.call("permit.tryRelease", { name, permitId: lease.owner })).toBe(true);
    expect(await peer.call("permit.tryRelease", { name, permitId: lease.owner })).toBe(false);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(await redis.get(name)).toBe("4");
    expect(await redis.exists(`{${name}}:timeout`)).toBe(0);
  });

  test("releasing several ids is all or nothing", async () => {
    const { peer, process, heard } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(5);
    const ids = await peer.call<string[]>("permit.tryAcquireSome", { name, permits: 3, leaseMs: LONG_MS });
    await heard();
    expect(await semaphore.tryReleaseAll([...ids, "00".repeat(16)])).toBe(false);
    expect(await semaphore.acquiredPermits()).toBe(3);
    expect(await semaphore.tryReleaseAll(ids)).toBe(true);
    // The message is the number of released permits, not of available ones.
    expect(await heard()).toEqual([`redisson_sc:{${name}} 3`]);
    const lease = await semaphore.acquire({ permits: 2, leaseMs: LONG_MS });
    await peer.call("permit.releaseSome", { name, permitIds: lease.permitIds });
    expect(await semaphore.availablePermits()).toBe(5);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(await semaphore.availablePermits()).toBe(5);
  });

  test("either side reclaims an expired permit, and its holder's release fails", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.permitExpirableSemaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(1);
    const ours = await semaphore.acquire({ leaseMs: 150, renew: false });
    // Only the end of that lease can wake the waiter because nothing is published.
    const theirs = await peer.call<string>("permit.tryAcquire", { name, waitMs: 20_000, leaseMs: 150 });
    expect(theirs).toMatch(/^[\da-f]{32}$/);
    await expect(ours.release()).rejects.toThrow(LeaseLostError);
    expect([...(await held({ redis }, `{${name}}:timeout`)).keys()]).toEqual([theirs]);
    const next = await semaphore.acquire({ waitMs: 20_000, leaseMs: LONG_MS });
    expect(await peer.call("permit.tryRelease", { name, permitId: theirs })).toBe(false);
    expect(await next.release()).toBe("released");
    expect(await redis.get(name)).toBe("1");
  });

  test("a permit released after its lease ended comes back once, and the release reports `late`", async () => {
    const { peer, redis, process, heard } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    const untilOver = async (id: string): Promise<void> => {
      const over = Number(await redis.zscore(`{${name}}:timeout`, Buffer.from(id, "hex")));
      while (Date.now() <= over + 2) await new Promise((go) => setTimeout(go, 5));
    };
    const unnoticed = await peer.call<string>("permit.tryAcquire", { name, leaseMs: 40 });
    await untilOver(unnoticed);
    await heard();
    // Counting the permits reclaims it and notifies waiters.
    expect(await semaphore.acquiredPermits()).toBe(0);
    expect(await heard()).toEqual([`redisson_sc:{${name}} 2`]);
    expect(await semaphore.tryRelease(unnoticed)).toBe("not-held");

    const theirs = await peer.call<string>("permit.tryAcquire", { name, leaseMs: 40 });
    await untilOver(theirs);
    expect(await semaphore.getLeaseTime(theirs)).toBeUndefined();
    expect(await semaphore.tryReleaseAll([theirs])).toBe(false);
    expect(await semaphore.tryRelease(theirs)).toBe("late");
    expect(await semaphore.tryRelease(theirs)).toBe("not-held");
    expect(await redis.get(name)).toBe("2");
  });

  test(
    "a Node lease is renewed while it is held, and the other side never gets in",
    () =>
      withLeaseInTime(async (leaseMs) => {
        const { peer, redis, process } = sides();
        const name = randomUUID();
        const semaphore = process().redisson.permitExpirableSemaphore(name);
        await semaphore.trySetPermits(1);
        const lease = await semaphore.acquire({ leaseMs });
        const first = (await held({ redis }, `{${name}}:timeout`)).get(lease.owner) ?? NEVER;
        expect(await peer.call("permit.tryAcquire", { name, waitMs: 3 * leaseMs, leaseMs: LONG_MS })).toBeNull();
        expect((await held({ redis }, `{${name}}:timeout`)).get(lease.owner)).toBeGreaterThan(first + 2 * leaseMs);
        expect(await lease.release()).toBe("released");
        expect(await peer.call("permit.tryAcquire", { name, leaseMs: LONG_MS })).toMatch(/^[\da-f]{32}$/);
      }, 500),
    60_000,
  );

  test("a release wakes a waiter on the other side every time", async () => {
    const { peer, redis, process, rounds } = sides();
    const name = randomUUID();
    const channel = `redisson_sc:{${name}}`;
    const semaphore = process().redisson.permitExpirableSemaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(1);
    for (let round = 0; round < rounds; round += 1) {
      const lease = await semaphore.acquire({ leaseMs: LONG_MS });
      const theirs = peer.call<string>("permit.tryAcquire", { name, waitMs: 20_000, leaseMs: LONG_MS });
      await untilHeard({ redis }, channel, 1);
      await lease.release();
      const permitId = await theirs;
      const ours = semaphore.acquire({ leaseMs: LONG_MS });
      await untilHeard({ redis }, channel, 1);
      await peer.call("permit.release", { name, permitId });
      await (await ours).release();
    }
  });

  test("either side can move the end of a lease, also to never and back", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    const timeout = `{${name}}:timeout`;
    const semaphore = process().redisson.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    const theirs = await peer.call<string>("permit.tryAcquire", { name, leaseMs: LONG_MS });
    expect(await semaphore.updateLeaseTime(theirs, Infinity)).toBe(true);
    expect(await redis.zscore(timeout, Buffer.from(theirs, "hex"))).toBe(String(NEVER));
    expect(await semaphore.updateLeaseTime(theirs, 2 * LONG_MS)).toBe(true);
    expect(await semaphore.getLeaseTime(theirs)).toBeGreaterThan(LONG_MS);
    const lease = await semaphore.acquire({ leaseMs: LONG_MS });
    expect(await peer.call("permit.updateLeaseTime", { name, permitId: lease.owner, leaseMs: 3 * LONG_MS })).toBe(true);
    expect(await semaphore.getLeaseTime(lease.owner)).toBeGreaterThan(2 * LONG_MS);
    // A renewal never shortens the lease.
    await lease.extend(LONG_MS);
    expect(await semaphore.getLeaseTime(lease.owner)).toBeGreaterThan(2 * LONG_MS);
    expect(await semaphore.updateLeaseTime("11".repeat(16), LONG_MS)).toBe(false);
    await lease.release();
  });

  test("both sides report the same counts before and after the number of permits changes", async () => {
    const { peer, process, heard } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.permitExpirableSemaphore(name);
    const counts = async (): Promise<number[][]> => {
      const verbs = ["availablePermits", "acquiredPermits", "getPermits"];
      const theirs = await Promise.all(verbs.map((verb) => peer.call<number>(`permit.${verb}`, { name })));
      const { availablePermits, acquiredPermits, getPermits } = semaphore;
      const all = [availablePermits, acquiredPermits, getPermits].map((verb) => verb.call(semaphore));
      return [await Promise.all(all), theirs];
    };
    expect(await counts()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    await semaphore.setPermits(5);
    const lease = await semaphore.acquire({ permits: 3, leaseMs: LONG_MS });
    await semaphore.setPermits(4);
    expect(await counts()).toEqual([
      [1, 3, 4],
      [1, 3, 4],
    ]);
    await peer.call("permit.setPermits", { name, permits: 2 });
    await heard();
    expect(await counts()).toEqual([
      [-1, 3, 2],
      [-1, 3, 2],
    ]);
    await semaphore.addPermits(2);
    await semaphore.addPermits(-1);
    expect(await heard()).toEqual([`redisson_sc:{${name}} 2`]);
    expect(await counts()).toEqual([
      [0, 3, 3],
      [0, 3, 3],
    ]);
    await lease.release();
  });

  test("under contention from both sides, the permit limit holds and every worker gets a turn", async () => {
    const { peer, process, contendMs, tell } = sides();
    const name = randomUUID();
    const one = process().redisson.permitExpirableSemaphore(name, BY_MESSAGE);
    const other = process().redisson.permitExpirableSemaphore(name, BY_MESSAGE);
    await one.trySetPermits(2);
    const ours =
      (semaphore: typeof one): Worker =>
      async () => {
        const lease = await semaphore.acquire({ waitMs: 20_000 });
        return () => lease.release();
      };
    const theirs: Worker = async () => {
      const permitId = await peer.call("permit.tryAcquire", { name, waitMs: 20_000, leaseMs: LONG_MS });
      expect(permitId).toMatch(/^[\da-f]{32}$/);
      return () => peer.call("permit.release", { name, permitId });
    };
    const workers = [ours(one), ours(other), ours(other), theirs, theirs, theirs];
    const { most, turns, longestMs } = await contend(workers, contendMs);
    tell?.("permitExpirableSemaphore", { most, turns, longestMs });
    expect(most).toBe(2);
    expect(Math.min(...turns)).toBeGreaterThan(0);
    expect(await one.getPermits()).toBe(2);
    expect(await one.availablePermits()).toBe(2);
  });
}
