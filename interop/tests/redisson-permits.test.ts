/** Redisson's semaphores and count-down latch, shared by Node and Java. */

import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { CONTENTION_MS, tell } from "./contention.js";
import { type Peer, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread, LONG_LEASE_MS, PATIENCE_MS } from "./sides.js";

const VAIN_WAIT_MS = 300;
const SHORT_LEASE_MS = 1_000;
const WAKES = 20;
/** A Node waiter polls only at this interval, so a faster one was woken by a message. */
const RECHECK_MS = 10_000;
const WOKEN_MS = 5_000;

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let here: Redisson;
let java: Peer;
let there: JavaClient;
let count = 0;

beforeAll(async () => {
  java = startRedisson();
  server = await startRedis();
  redis = new Redis(server.url);
  holdfast = createHoldfast({ redis });
  here = redisson(holdfast);
  there = await connect(java, { port: server.port });
});
afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await java.stop();
  await server.stop();
});

function fresh(): string {
  count += 1;
  return `shared:${count}`;
}

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("it was not granted");
  return value;
}

describe("a semaphore", () => {
  test("has one count for both sides, whoever sets it", async () => {
    const [name, other] = [fresh(), fresh()];
    const semaphore = here.semaphore(name);
    expect(await semaphore.trySetPermits(3)).toBe(true);
    expect(await there.call("semaphore.trySetPermits", { name, permits: 9 })).toBe(false);
    expect(await there.call("semaphore.tryAcquire", { name, permits: 2 })).toBe(true);
    expect(await semaphore.tryAcquire({ permits: 2 })).toBeNull();
    const lease = must(await semaphore.tryAcquire());
    expect(await there.call("semaphore.availablePermits", { name })).toBe(0);
    expect(await there.call("semaphore.tryAcquire", { name, waitMs: VAIN_WAIT_MS })).toBe(false);
    await expect(semaphore.acquire({ waitMs: VAIN_WAIT_MS })).rejects.toThrow();
    expect(await lease.release()).toBe("released");
    await there.call("semaphore.release", { name, permits: 2 });
    expect(await semaphore.availablePermits()).toBe(3);

    expect(await there.call("semaphore.trySetPermits", { name: other, permits: 2 })).toBe(true);
    expect(await here.semaphore(other).trySetPermits(9)).toBe(false);
    await here.semaphore(other).addPermits(-3);
    expect(await there.call("semaphore.availablePermits", { name: other })).toBe(-1);
    await there.call("semaphore.addPermits", { name: other, permits: 5 });
    expect(await here.semaphore(other).drainPermits()).toBe(4);
    expect(await there.call("semaphore.drainPermits", { name: other })).toBe(0);
  });

  test("wakes a waiter of the other side", { timeout: 120_000 }, async () => {
    const name = fresh();
    const semaphore = here.semaphore(name, { recheckMs: RECHECK_MS });
    await semaphore.trySetPermits(1);
    let late = 0;
    const woken = (sinceMs: number): void => {
      if (performance.now() - sinceMs >= WOKEN_MS) late += 1;
    };
    for (let wake = 0; wake < WAKES; wake += 1) {
      const lease = must(await semaphore.tryAcquire({ leaseMs: LONG_LEASE_MS }));
      const javaWaits = freshThread(there).call("semaphore.acquire", { name });
      await sleep(Math.random() * 40);
      let releasedAtMs = performance.now();
      await lease.release();
      await javaWaits;
      woken(releasedAtMs);
      const nodeWaits = semaphore.acquire({ waitMs: PATIENCE_MS });
      await sleep(Math.random() * 40);
      releasedAtMs = performance.now();
      await there.call("semaphore.release", { name });
      const next = await nodeWaits;
      woken(releasedAtMs);
      await next.release();
    }
    expect(late).toBeLessThanOrEqual(1);
  });

  test("several waiters of both sides are served by one release of several permits", async () => {
    const name = fresh();
    const semaphore = here.semaphore(name);
    await semaphore.trySetPermits(4);
    expect(await there.call("semaphore.tryAcquire", { name, permits: 4 })).toBe(true);
    const waiting = [
      freshThread(there).call("semaphore.acquire", { name }),
      semaphore.acquire({ waitMs: PATIENCE_MS }),
      freshThread(there).call("semaphore.acquire", { name }),
      semaphore.acquire({ waitMs: PATIENCE_MS }),
    ];
    await sleep(50);
    await there.call("semaphore.release", { name, permits: 4 });
    await Promise.all(waiting);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test("permits of a dead Node service come back; those of Java do not, because the format does not record them", async () => {
    const name = fresh();
    const [dyingThere, dyingHere] = [await connect(java, { port: server.port }), new Redis(server.url)];
    const dead = createHoldfast({ redis: dyingHere });
    await here.semaphore(name).trySetPermits(2);
    must(await redisson(dead).semaphore(name).tryAcquire({ leaseMs: SHORT_LEASE_MS }));
    expect(await dyingThere.call("semaphore.tryAcquire", { name })).toBe(true);
    dyingHere.disconnect();
    await dyingThere.crash();
    const lease = await here.semaphore(name, { recheckMs: 100 }).acquire({ waitMs: PATIENCE_MS });
    expect(await here.semaphore(name).tryAcquire()).toBeNull();
    expect(await there.call("semaphore.availablePermits", { name })).toBe(0);
    await lease.release();
    await dead.close();
  });

  test("there are never more holders than permits, with both sides at random", {
    timeout: CONTENTION_MS + 60_000,
  }, async () => {
    const name = fresh();
    const inside = `inside ${name}`;
    const permits = 2;
    await here.semaphore(name).trySetPermits(permits);
    const endAtMs = performance.now() + CONTENTION_MS;
    let most = 0;
    const rounds: number[] = [];
    async function contender(place: number, acquire: () => Promise<() => Promise<unknown>>): Promise<void> {
      rounds[place] = 0;
      while (performance.now() < endAtMs) {
        const release = await acquire();
        most = Math.max(most, await redis.incr(inside));
        await sleep(Math.random() * 5);
        await redis.decr(inside);
        await release();
        rounds[place] = (rounds[place] ?? 0) + 1;
        await sleep(Math.random() * 5);
      }
    }
    const nodeSide = async (): Promise<() => Promise<unknown>> => {
      const lease = await here.semaphore(name).acquire({ waitMs: PATIENCE_MS });
      return () => lease.release();
    };
    const javaSide = (): (() => Promise<() => Promise<unknown>>) => {
      const thread = freshThread(there);
      return async () => {
        expect(await thread.call("semaphore.tryAcquire", { name, waitMs: PATIENCE_MS })).toBe(true);
        return () => thread.call("semaphore.release", { name });
      };
    };
    await Promise.all([nodeSide, nodeSide, javaSide(), javaSide()].map((side, i) => contender(i, side)));
    tell("semaphore", JSON.stringify({ rounds, most, permits }));
    expect(most).toBe(permits);
    for (const each of rounds) expect(each).toBeGreaterThan(0);
    expect(await here.semaphore(name).availablePermits()).toBe(permits);
  });
});

describe("a semaphore of expirable permits", () => {
  const acquireThere = (name: string, values: object = {}): Promise<string | null> =>
    freshThread(there).call<string | null>("permit.tryAcquire", { name, ...values });

  test("an id that one side acquired can be given back by the other", async () => {
    const name = fresh();
    const semaphore = here.permitExpirableSemaphore(name);
    expect(await there.call("permit.trySetPermits", { name, permits: 2 })).toBe(true);
    const lease = must(await semaphore.tryAcquire({ leaseMs: LONG_LEASE_MS }));
    const javaId = must(await acquireThere(name, { leaseMs: LONG_LEASE_MS }));
    expect(await semaphore.tryAcquire()).toBeNull();
    expect(await acquireThere(name, { waitMs: VAIN_WAIT_MS })).toBeNull();
    expect(await there.call("permit.acquiredPermits", { name })).toBe(2);

    expect(await semaphore.tryRelease(javaId)).toBe("released");
    await expect(there.call("permit.release", { name, permitId: javaId })).rejects.toThrow();
    expect(lease.permitIds).toEqual([lease.owner]);
    expect(await there.call("permit.tryRelease", { name, permitId: lease.permitIds[0] })).toBe(true);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(await there.call("permit.availablePermits", { name })).toBe(2);
  });

  test("either side acquires several permits at once, and the other side releases them", async () => {
    const name = fresh();
    const semaphore = here.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(5);
    const ids = await there.call<string[]>("permit.tryAcquireSome", { name, permits: 3, leaseMs: LONG_LEASE_MS });
    expect(ids).toHaveLength(3);
    expect(await semaphore.tryAcquire({ permits: 3 })).toBeNull();
    const lease = must(await semaphore.tryAcquire({ permits: 2, leaseMs: LONG_LEASE_MS }));
    expect(await semaphore.tryReleaseAll(ids)).toBe(true);
    await there.call("permit.releaseSome", { name, permitIds: lease.permitIds });
    expect(await there.call("permit.availablePermits", { name })).toBe(5);
  });

  test("Node gets an expired permit of Java, and Java does not get a renewed permit of Node", async () => {
    const name = fresh();
    const semaphore = here.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    const renewed = must(await semaphore.tryAcquire({ leaseMs: 2 * SHORT_LEASE_MS }));
    must(await acquireThere(name, { leaseMs: SHORT_LEASE_MS }));
    const next = await semaphore.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
    const overAtMs = Date.now() + 2 * SHORT_LEASE_MS;
    while (Date.now() <= overAtMs) expect(await acquireThere(name)).toBeNull();
    expect(await renewed.release()).toBe("released");
    expect(await next.release()).toBe("released");
  });

  test("Java gets a permit of a dead Node service when its lease is over, not before", async () => {
    const name = fresh();
    const dying = new Redis(server.url);
    const dead = createHoldfast({ redis: dying });
    await here.permitExpirableSemaphore(name).trySetPermits(1);
    must(
      await redisson(dead)
        .permitExpirableSemaphore(name)
        .tryAcquire({ leaseMs: 2 * SHORT_LEASE_MS }),
    );
    dying.disconnect();
    expect(await acquireThere(name)).toBeNull();
    const id = must(await acquireThere(name, { waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS }));
    expect(await there.call("permit.tryRelease", { name, permitId: id })).toBe(true);
    await dead.close();
  });

  test("wakes a waiter of the other side", { timeout: 120_000 }, async () => {
    const name = fresh();
    const semaphore = here.permitExpirableSemaphore(name, { recheckMs: RECHECK_MS });
    await semaphore.trySetPermits(1);
    let late = 0;
    const woken = (sinceMs: number): void => {
      if (performance.now() - sinceMs >= WOKEN_MS) late += 1;
    };
    for (let wake = 0; wake < WAKES; wake += 1) {
      const lease = must(await semaphore.tryAcquire({ leaseMs: LONG_LEASE_MS }));
      const javaWaits = acquireThere(name, { waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
      await sleep(Math.random() * 40);
      let releasedAtMs = performance.now();
      await lease.release();
      const id = must(await javaWaits);
      woken(releasedAtMs);
      const nodeWaits = semaphore.acquire({ waitMs: PATIENCE_MS });
      await sleep(Math.random() * 40);
      releasedAtMs = performance.now();
      await there.call("permit.release", { name, permitId: id });
      const next = await nodeWaits;
      woken(releasedAtMs);
      await next.release();
    }
    expect(late).toBeLessThanOrEqual(1);
  });

  test("each side changes the end of a permit of the other, and 'never' means never on both", async () => {
    const name = fresh();
    const semaphore = here.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    const javaId = must(await acquireThere(name));
    expect(await semaphore.getLeaseTime(javaId)).toBe(Infinity);
    expect(await semaphore.updateLeaseTime(javaId, LONG_LEASE_MS)).toBe(true);
    expect(await semaphore.getLeaseTime(javaId)).toBeLessThanOrEqual(LONG_LEASE_MS);
    expect(await semaphore.updateLeaseTime(javaId, Infinity)).toBe(true);
    expect(await redis.zscore(`{${name}}:timeout`, Buffer.from(javaId, "hex"))).toBe("922337203685477");
    const lease = must(await semaphore.tryAcquire({ leaseMs: SHORT_LEASE_MS, renew: false }));
    expect(await there.call("permit.updateLeaseTime", { name, permitId: lease.owner, leaseMs: LONG_LEASE_MS })).toBe(
      true,
    );
    expect(await semaphore.getLeaseTime(lease.owner)).toBeGreaterThan(SHORT_LEASE_MS);
    expect(await semaphore.tryRelease(javaId)).toBe("released");
    await semaphore.setPermits(7);
    expect(await there.call("permit.getPermits", { name })).toBe(7);
    await there.call("permit.setPermits", { name, permits: 3 });
    expect(await semaphore.getPermits()).toBe(3);
  });
});

describe("a count-down latch", () => {
  test.each([
    ["Java", "Node"],
    ["Node", "Java"],
  ])("set by %s and counted down by %s opens for the waiters of both", async (setter, counter) => {
    const name = fresh();
    const latch = here.countDownLatch(name, { recheckMs: 60_000 });
    const isSet = setter === "Node" ? latch.trySetCount(3) : there.call("latch.trySetCount", { name, count: 3 });
    expect(await isSet).toBe(true);
    expect(await latch.trySetCount(5)).toBe(false);
    expect(await there.call("latch.trySetCount", { name, count: 5 })).toBe(false);
    await expect(latch.await({ waitMs: VAIN_WAIT_MS })).rejects.toThrow();
    expect(await there.call("latch.await", { name, waitMs: VAIN_WAIT_MS })).toBe(false);
    const waiting = [
      latch.await({ waitMs: PATIENCE_MS }).then(() => true),
      freshThread(there).call("latch.await", { name }),
    ];
    const down = (): Promise<unknown> =>
      counter === "Node" ? latch.countDown() : there.call("latch.countDown", { name });
    await down();
    await down();
    expect(await latch.getCount()).toBe(1);
    expect(await there.call("latch.getCount", { name })).toBe(1);
    await down();
    expect(await Promise.all(waiting)).toEqual([true, true]);
    expect(await redis.exists(name)).toBe(0);
    expect(await latch.countDown()).toBe(0);
    await there.call("latch.countDown", { name });
    expect(await redis.exists(name)).toBe(0);
  });

  test("deleted by Node opens for the waiters of both sides", async () => {
    const name = fresh();
    const latch = here.countDownLatch(name);
    await latch.trySetCount(2);
    const waiting = [
      latch.await({ waitMs: PATIENCE_MS }).then(() => true),
      freshThread(there).call("latch.await", { name, waitMs: PATIENCE_MS }),
    ];
    await sleep(50);
    expect(await latch.delete()).toBe(true);
    expect(await Promise.all(waiting)).toEqual([true, true]);
  });

  test("deleted by Java opens for the waiters of Node when they ask again", async () => {
    const name = fresh();
    const latch = here.countDownLatch(name, { recheckMs: 200 });
    await latch.trySetCount(2);
    const waiting = latch.await({ waitMs: PATIENCE_MS });
    await sleep(50);
    await there.call("latch.delete", { name });
    await waiting;
  });

  test("can be set again by either side when it is open", async () => {
    const name = fresh();
    const latch = here.countDownLatch(name);
    await latch.trySetCount(1);
    await there.call("latch.countDown", { name });
    expect(await there.call("latch.trySetCount", { name, count: 1 })).toBe(true);
    await expect(latch.await({ waitMs: VAIN_WAIT_MS })).rejects.toThrow();
    expect(await latch.countDown()).toBe(0);
    expect(await there.call("latch.await", { name, waitMs: PATIENCE_MS })).toBe(true);
  });
});
