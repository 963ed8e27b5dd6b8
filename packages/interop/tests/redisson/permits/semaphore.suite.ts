/** Redisson's plain semaphore, shared with a Java peer: holding, waiting and waking in both directions. */
import { randomUUID } from "node:crypto";
import { LeaseLostError } from "holdfast";
import { expect, test } from "vitest";
import { BY_MESSAGE, contend, type TwoSides, untilHeard, type Worker } from "./peer.js";

/** @param sides  called when a test runs */
export function semaphoreSuite(sides: () => TwoSides): void {
  test.each([
    ["a name without braces", (id: string) => id, (id: string) => `redisson_sc:{${id}}`],
    ["a hash tag at the end", (id: string) => `${id}:{42}`, (id: string) => `redisson_sc:${id}:{42}`],
    ["a hash tag in front", (id: string) => `{${id}}x`, (id: string) => `redisson_sc:{${id}}x`],
  ])("both sides take permits from one count and write it in the same way: %s", async (_, nameOf, channelOf) => {
    const { peer, redis, process, heard } = sides();
    const name = nameOf(randomUUID());
    const channel = channelOf(/[\da-f-]{36}/.exec(name)?.[0] ?? "");
    const semaphore = process().redisson.semaphore(name);

    expect(await semaphore.trySetPermits(3)).toBe(true);
    expect(await peer.call("semaphore.trySetPermits", { name, permits: 9 })).toBe(false);
    expect(await redis.get(name)).toBe("3");
    const lease = await semaphore.acquire({ permits: 2 });
    expect(await redis.get(name)).toBe("1");
    expect(await redis.pttl(name)).toBe(-1);
    expect(await peer.call<number>("semaphore.availablePermits", { name })).toBe(1);
    expect(await peer.call("semaphore.tryAcquire", { name, permits: 2 })).toBe(false);
    expect(await peer.call("semaphore.tryAcquire", { name })).toBe(true);
    expect(await semaphore.availablePermits()).toBe(0);
    expect(await semaphore.tryAcquire()).toBeNull();
    expect(await lease.release()).toBe("released");
    await peer.call("semaphore.release", { name });
    expect(await semaphore.availablePermits()).toBe(3);
    expect((await heard()).filter((message) => message.startsWith(`${channel} `))).toEqual([
      `${channel} 3`,
      `${channel} 2`,
      `${channel} 3`,
    ]);
  });

  test("a release on either side wakes a waiter on the other every time", async () => {
    const { peer, redis, process, rounds } = sides();
    const name = randomUUID();
    const channel = `redisson_sc:{${name}}`;
    const semaphore = process().redisson.semaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(1);
    for (let round = 0; round < rounds; round += 1) {
      const lease = await semaphore.acquire();
      const theirs = peer.call("semaphore.tryAcquire", { name, waitMs: 20_000 });
      await untilHeard({ redis }, channel, 1);
      await lease.release();
      expect(await theirs).toBe(true);
      const ours = semaphore.acquire();
      await untilHeard({ redis }, channel, 1);
      await peer.call("semaphore.release", { name });
      await (await ours).release();
    }
  });

  test("release(n) wakes n waiters on both sides, and no more", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    await process().redisson.semaphore(name).trySetPermits(0);
    const ours = Array.from({ length: 3 }, () =>
      process().redisson.semaphore(name, BY_MESSAGE).acquire({ renew: false, waitMs: 20_000 }),
    );
    const theirs = Array.from({ length: 2 }, () => peer.call("semaphore.tryAcquire", { name, waitMs: 20_000 }));
    const late = process().redisson.semaphore(name, BY_MESSAGE);
    // Each Node process and the Java peer have one subscriber connection.
    await untilHeard({ redis }, `redisson_sc:{${name}}`, 4);
    await peer.call("semaphore.release", { name, permits: 5 });
    await Promise.all(ours);
    expect(await Promise.all(theirs)).toEqual([true, true]);
    expect(await late.tryAcquire()).toBeNull();

    const again = Array.from({ length: 2 }, () => peer.call("semaphore.tryAcquire", { name, waitMs: 20_000 }));
    await untilHeard({ redis }, `redisson_sc:{${name}}`, 1);
    await late.release(2);
    expect(await Promise.all(again)).toEqual([true, true]);
  });

  test("a wait ends at its time limit on either side and leaves nothing behind", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    const { redisson, holdfast } = process();
    const semaphore = redisson.semaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(1);
    const lease = await semaphore.acquire();
    expect(await peer.call("semaphore.tryAcquire", { name, waitMs: 30 })).toBe(false);
    await expect(process().redisson.semaphore(name).acquire({ waitMs: 30 })).rejects.toMatchObject({
      code: "ERR_LOCK_ACQUIRE_TIMEOUT",
      holder: { owner: lease.owner },
    });
    await lease.release();
    await holdfast.close();
    expect(await redis.get(name)).toBe("1");
    // Only the stored replies to requests are left. They expire and hold no permits.
    const left = (await redis.keys(`*${name}*`)).filter((key) => !key.includes(":request:"));
    expect(left).toEqual([name]);
  });

  test("permits can be removed, and a count below one is not published", async () => {
    const { peer, process, heard } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.semaphore(name);
    await peer.call("semaphore.trySetPermits", { name, permits: 2 });
    await heard();
    await semaphore.addPermits(-5);
    expect(await peer.call<number>("semaphore.availablePermits", { name })).toBe(-3);
    expect(await semaphore.tryAcquire()).toBeNull();
    await semaphore.release(3);
    expect(await heard()).toEqual([]);
    await semaphore.release();
    expect(await heard()).toEqual([`redisson_sc:{${name}} 1`]);
    await semaphore.addPermits(-2);
    expect(await semaphore.drainPermits()).toBe(-1);
    expect(await peer.call<number>("semaphore.availablePermits", { name })).toBe(0);
  });

  test("either side can drain the semaphore, and leased permits come back afterwards", async () => {
    const { peer, process } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.semaphore(name);
    await semaphore.trySetPermits(5);
    const lease = await semaphore.acquire({ permits: 2 });
    expect(await peer.call<number>("semaphore.drainPermits", { name })).toBe(3);
    expect(await semaphore.drainPermits()).toBe(0);
    await lease.release();
    expect(await semaphore.drainPermits()).toBe(2);
    expect(await semaphore.releaseIfExists(4)).toBe(true);
    expect(await peer.call<number>("semaphore.availablePermits", { name })).toBe(4);
    expect(await semaphore.releaseIfExists.call(process().redisson.semaphore(randomUUID()))).toBe(false);
  });

  test("permits of a crashed Node holder come back, and a waiter on the other side is notified", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    const semaphore = process().redisson.semaphore(name, { recheckMs: 20 });
    await semaphore.trySetPermits(2);
    const dead = await process().redisson.semaphore(name).acquire({ permits: 2, leaseMs: 150, renew: false });
    const theirs = peer.call("semaphore.tryAcquire", { name, waitMs: 20_000 });
    await untilHeard({ redis }, `redisson_sc:{${name}}`, 1);
    // The Node waiter reclaims both permits when the lease ends, and the Java waiter is notified.
    const ours = await semaphore.acquire();
    expect(await theirs).toBe(true);
    await expect(dead.release()).rejects.toThrow(LeaseLostError);
    expect(await redis.get(name)).toBe("0");
    expect(await ours.release()).toBe("released");
    expect(await redis.get(name)).toBe("1");
  });

  test("under contention from both sides, the permit limit holds and every worker gets a turn", async () => {
    const { peer, process, contendMs, tell } = sides();
    const name = randomUUID();
    const one = process().redisson.semaphore(name, BY_MESSAGE);
    const other = process().redisson.semaphore(name, BY_MESSAGE);
    await one.trySetPermits(2);
    const ours =
      (semaphore: typeof one): Worker =>
      async () => {
        const lease = await semaphore.acquire({ waitMs: 20_000 });
        return () => lease.release();
      };
    const theirs: Worker = async () => {
      expect(await peer.call("semaphore.tryAcquire", { name, waitMs: 20_000 })).toBe(true);
      return () => peer.call("semaphore.release", { name });
    };
    const workers = [ours(one), ours(other), ours(other), theirs, theirs, theirs];
    const { most, turns, longestMs } = await contend(workers, contendMs);
    tell?.("semaphore", { most, turns, longestMs });
    expect(most).toBe(2);
    expect(Math.min(...turns)).toBeGreaterThan(0);
    expect(await one.availablePermits()).toBe(2);
  });
}
