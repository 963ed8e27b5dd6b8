/** Node and Java on a cluster, where Redisson may publish to shards, and behind Sentinel, where it waits for replicas. */
import { createHoldfast, type Holdfast } from "holdfast";
import { type Redisson, redisson } from "holdfast/redisson";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisCluster, startCluster } from "../../tests/support/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../../tests/support/redis-sentinel.js";
import { type Peer, startRedisson } from "./peer.js";
import { connectTo, type JavaClient } from "./redisson-peer.js";
import { freshThread, javaSide, LONG_LEASE_MS, type NodeLock, nodeSide, PATIENCE_MS, type Side } from "./sides.js";

const START_MS = 120_000;
/** Before this a waiter of Node does not ask by itself, so whoever is sooner was woken. */
const WOKEN_MS = 4_000;
const WAKES = 5;

let java: Peer;
let count = 0;

beforeAll(() => {
  java = startRedisson();
});
afterAll(() => java.stop());

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("it was not granted");
  return value;
}

const TYPES = ["lock", "fair", "write"] as const;

function sidesOf(type: (typeof TYPES)[number], here: Redisson, there: JavaClient, redis: Redis): [Side, Side] {
  const lockOf = (name: string): NodeLock => {
    if (type === "lock") return here.lock(name);
    return type === "fair" ? here.fairLock(name) : here.readWriteLock(name).write;
  };
  return [javaSide(there, (name) => ({ type, name })), nodeSide(redis, lockOf)];
}

/** Held by one, refused to the other, and handed over by a message, both ways and again and again. */
async function expectShared(name: string, [java, node]: readonly [Side, Side]): Promise<void> {
  const late = { Java: 0, Node: 0 };
  for (let wake = 0; wake < WAKES; wake += 1) {
    for (const [x, y, who] of [
      [java, node, "Node"],
      [node, java, "Java"],
    ] as const) {
      const hold = must(await x.tryHold(name, LONG_LEASE_MS));
      expect(await y.tryHold(name)).toBeNull();
      const waiting = y.waitFor(name, PATIENCE_MS, LONG_LEASE_MS);
      await sleep(100);
      const releasedAtMs = performance.now();
      expect(await hold.release()).toBe(true);
      const next = must(await waiting);
      if (performance.now() - releasedAtMs >= WOKEN_MS) late[who] += 1;
      expect(await next.release()).toBe(true);
    }
  }
  // One may be late on a machine that stands still; a side that hears nothing always is.
  expect(Math.max(late.Java, late.Node), `late: ${JSON.stringify(late)}`).toBeLessThanOrEqual(1);
}

/** Permits with ids, plain ones, and a latch, from one side to the other by messages. */
async function expectCounted(here: Redisson, there: JavaClient): Promise<void> {
  for (const base of ["seats", "seats:{7}:", "{s}x"]) {
    count += 1;
    const name = `${base}${count}`;
    const seats = here.permitExpirableSemaphore(`${name}:p`, { recheckMs: 60_000 });
    expect(await seats.trySetPermits(1)).toBe(true);
    const lease = must(await seats.tryAcquire({ leaseMs: LONG_LEASE_MS }));
    expect(await there.call("permit.tryAcquire", { name: seats.name })).toBeNull();
    const waiting = freshThread(there).call<string>("permit.tryAcquire", { name: seats.name, waitMs: PATIENCE_MS });
    await sleep(100);
    expect(await lease.release()).toBe("released");
    const permitId = await waiting;
    expect(permitId).toMatch(/^[\da-f]{32}$/);
    expect(await seats.acquiredPermits()).toBe(1);
    const next = seats.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
    await sleep(100);
    // An id of Java is given back by Node, and the waiter of Node hears of it.
    expect(await seats.tryRelease(permitId)).toBe("released");
    const last = await next;
    expect(await there.call("permit.tryRelease", { name: seats.name, permitId: last.owner })).toBe(true);
    await expect(last.release()).rejects.toThrow();
    expect(await there.call("permit.availablePermits", { name: seats.name })).toBe(1);

    const plain = here.semaphore(`${name}:s`, { recheckMs: 60_000 });
    expect(await plain.trySetPermits(1)).toBe(true);
    const held = must(await plain.tryAcquire({ leaseMs: LONG_LEASE_MS }));
    const javaWaits = freshThread(there).call("semaphore.tryAcquire", { name: plain.name, waitMs: PATIENCE_MS });
    await sleep(100);
    expect(await held.release()).toBe("released");
    expect(await javaWaits).toBe(true);
    const nodeWaits = plain.acquire({ waitMs: PATIENCE_MS });
    await sleep(100);
    await there.call("semaphore.release", { name: plain.name });
    expect(await (await nodeWaits).release()).toBe("released");
  }
  count += 1;
  const latch = here.countDownLatch(`opened:${count}`, { recheckMs: 60_000 });
  expect(await latch.trySetCount(2)).toBe(true);
  const opened = [
    latch.await({ waitMs: PATIENCE_MS }),
    freshThread(there).call("latch.await", { name: latch.name, waitMs: PATIENCE_MS }),
  ];
  await there.call("latch.countDown", { name: latch.name });
  expect(await latch.countDown()).toBe(0);
  await Promise.all(opened);
}

describe("on a cluster", () => {
  let cluster: RedisCluster;
  let nodes: Cluster;
  let holdfast: Holdfast;

  beforeAll(async () => {
    cluster = await startCluster({ nodeTimeoutMs: 15_000 });
    nodes = new Cluster(
      cluster.ports.map((port) => ({ port, host: "127.0.0.1" })),
      { shardedSubscribers: true },
    );
    holdfast = createHoldfast({ redis: nodes });
  }, START_MS);
  afterAll(async () => {
    await holdfast.close();
    nodes.disconnect();
    await cluster.stop();
  });

  const addresses = (): string[] => cluster.ports.map((port) => `redis://127.0.0.1:${port}`);

  test("a lock is told of by the master, also through a client that reads from replicas", async () => {
    const reading = new Cluster(
      cluster.ports.map((port) => ({ host: "127.0.0.1", port })),
      { scaleReads: "slave" },
    );
    const elsewhere = createHoldfast({ redis: reading });
    for (let round = 0; round < 100; round += 1) {
      count += 1;
      const lease = await redisson(holdfast).lock(`seen:${count}`).acquire();
      expect((await redisson(elsewhere).lock(`seen:${count}`).inspect()).holders).toMatchObject([
        { owner: lease.owner },
      ]);
      expect(await lease.release()).toBe("released");
      expect((await redisson(elsewhere).lock(`seen:${count}`).inspect()).holders).toEqual([]);
    }
    await elsewhere.close();
    reading.disconnect();
  });

  describe.each(["AUTO", "OFF"])("with shardedSubscriptionMode %s in Java", (sharded) => {
    let there: JavaClient;
    beforeAll(async () => {
      there = await connectTo(java, { mode: "cluster", addresses: addresses(), sharded });
    });

    test.each(TYPES)("a lock of type %s is handed over by messages, whatever its slot", async (type) => {
      // Sides of a cluster share no counter, so the one connection that a side is given here is not used.
      const sides = sidesOf(type, redisson(holdfast), there, new Redis({ lazyConnect: true }));
      for (const name of ["order", "order:{42}", "{t}x"]) {
        count += 1;
        await expectShared(`${name}${count}`, sides);
      }
    });

    test("permits of all sorts and a latch go from one side to the other by messages, whatever their slots", () =>
      expectCounted(redisson(holdfast), there));
  });
});

describe("behind Sentinel", () => {
  let sentinel: RedisSentinel;
  let master: Redis;
  let holdfast: Holdfast;
  let there: JavaClient;

  beforeAll(async () => {
    sentinel = await startSentinel({ replicas: 1 });
    master = new Redis({ sentinels: [...sentinel.addresses], name: sentinel.name });
    holdfast = createHoldfast({ redis: master });
    const addresses = sentinel.addresses.map(({ host, port }) => `redis://${host}:${port}`);
    there = await connectTo(java, { mode: "sentinel", master: sentinel.name, addresses });
  }, START_MS);
  afterAll(async () => {
    await holdfast.close();
    master.disconnect();
    await sentinel.stop();
  });

  test.each(TYPES)("a lock of type %s is handed over by messages", async (type) => {
    count += 1;
    await expectShared(`watched:${count}`, sidesOf(type, redisson(holdfast), there, master));
  });

  test("permits of all sorts and a latch go from one side to the other by messages", () =>
    expectCounted(redisson(holdfast), there));
});
