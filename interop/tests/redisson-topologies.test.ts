/** Node and Java on a cluster, where Redisson may publish to shards, and behind Sentinel, where it waits for replicas. */

import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";
import { contend, type Worker } from "../../packages/interop/tests/redisson/permits/peer.js";
import { type RedisCluster, startCluster } from "../../tests/support/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../../tests/support/redis-sentinel.js";
import { type CounterStore, ELSEWHERE_MS, expectNoLostUpdate, tell } from "./contention.js";
import { type Peer, type RedissonVersion, startRedisson } from "./peer.js";
import { connectTo, type JavaClient } from "./redisson-peer.js";
import { freshThread, javaSide, LONG_LEASE_MS, type NodeLock, nodeSide, PATIENCE_MS, type Side } from "./sides.js";

const START_MS = 120_000;
/** A Node waiter does not poll before this time, so a faster one was woken by a message. */
const WOKEN_MS = 4_000;
const WAKES = 5;
/** How long a Java writer waits if it has missed the release of another Java writer; see redisson-gap. */
const JAVA_WATCHDOG_MS = 10_000;

let count = 0;

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("it was not granted");
  return value;
}

type LockType = "lock" | "fenced" | "spin" | "fair" | "write" | "multi";

/** The lock types whose messages are published in different ways. */
const TYPES = ["lock", "fair", "write"] as const;

const LOCKS: Readonly<Record<LockType, (of: Redisson, name: string) => NodeLock>> = {
  lock: (of, name) => of.lock(name),
  fenced: (of, name) => of.fencedLock(name),
  spin: (of, name) => of.spinLock(name),
  fair: (of, name) => of.fairLock(name),
  write: (of, name) => of.readWriteLock(name).write,
  multi: (of, name) => of.multiLock([`${name}:a`, `${name}:b`]),
};

function sidesOf(type: LockType, here: Redisson, there: JavaClient, store: CounterStore): [Side, Side] {
  const theirs: Parameters<typeof javaSide>[1] = (name) =>
    type === "multi" ? { type, names: [`${name}:a`, `${name}:b`] } : { type, name };
  return [javaSide(there, theirs), nodeSide(store, (name) => LOCKS[type](here, name))];
}

/**
 * Expects that a lock held by one side is refused to the other, and handed over by a message, repeatedly in both
 * directions.
 */
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
  // Tolerates one late wake, which a stalled machine can cause. A side that gets no messages is always late.
  expect(Math.max(late.Java, late.Node), `late: ${JSON.stringify(late)}`).toBeLessThanOrEqual(1);
}

/** Permits with ids, plain permits and a latch, passed from one side to the other by messages. */
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
    // Node releases a permit by the id that Java acquired, and the waiter in Node is notified.
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

/** Contention for all lock types at the same time, from both sides, with a counter for each. */
async function expectContended(here: Redisson, there: JavaClient, store: CounterStore, where: string): Promise<void> {
  const locks = (Object.keys(LOCKS) as LockType[]).map(async (type) => {
    const [java, node] = sidesOf(type, here, there, store);
    count += 1;
    const name = `contended:${count}`;
    const of = (side: Side) => (counter: string) => side.contend(name, counter, ELSEWHERE_MS);
    const contenders = { Node: of(node), "Node again": of(node), Java: of(java), "Java again": of(java) };
    await expectNoLostUpdate(store, contenders, PATIENCE_MS, `${where}, ${type}`);
  });
  await Promise.all([...locks, ...permitContention(here, there, where)]);
}

function permitContention(here: Redisson, there: JavaClient, where: string): Promise<void>[] {
  count += 1;
  const [plain, dated] = [here.semaphore(`places:${count}`), here.permitExpirableSemaphore(`seats:${count}`)];
  const bound = { waitMs: PATIENCE_MS };
  const ours = (semaphore: typeof plain | typeof dated) => async () => {
    const lease = await semaphore.acquire(bound);
    return () => lease.release();
  };
  const plainThere: Worker = async () => {
    expect(await freshThread(there).call("semaphore.tryAcquire", { name: plain.name, ...bound })).toBe(true);
    return () => freshThread(there).call("semaphore.release", { name: plain.name });
  };
  const datedThere: Worker = async () => {
    const permit = { name: dated.name, ...bound, leaseMs: LONG_LEASE_MS };
    const permitId = must(await freshThread(there).call<string | null>("permit.tryAcquire", permit));
    return () => freshThread(there).call("permit.release", { name: dated.name, permitId });
  };
  const rows = [
    ["semaphore", plain, [ours(plain), ours(plain), plainThere, plainThere]],
    ["permitExpirableSemaphore", dated, [ours(dated), ours(dated), datedThere, datedThere]],
  ] as const;
  return rows.map(async ([type, semaphore, workers]) => {
    expect(await semaphore.trySetPermits(2)).toBe(true);
    const result = await contend(workers, ELSEWHERE_MS);
    tell(`${where}, ${type}`, JSON.stringify(result));
    expect(result.most).toBe(2);
    expect(Math.min(...result.turns)).toBeGreaterThan(0);
    expect(await semaphore.availablePermits()).toBe(2);
  });
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

  test("the state of a lock comes from the master, even through a client that reads from replicas", async () => {
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

  // Redisson before 3.22 did not use shards; 3.27 uses them, but they cannot be configured.
  const services: readonly (readonly [RedissonVersion, string, object])[] = [
    ["4.7.0", "with shardedSubscriptionMode AUTO", { sharded: "AUTO" }],
    ["4.7.0", "with shardedSubscriptionMode OFF", { sharded: "OFF" }],
    ["3.27.2", "as it is", {}],
    ["3.21.3", "as it is", {}],
  ];
  describe.each(services)("Redisson %s, %s", (version, mode, settings) => {
    let java: Peer;
    let there: JavaClient;
    beforeAll(async () => {
      java = startRedisson(version);
      there = await connectTo(java, {
        mode: "cluster",
        addresses: addresses(),
        watchdogMs: JAVA_WATCHDOG_MS,
        ...settings,
      });
    });
    afterAll(() => java.stop());

    test.each(TYPES)("a lock of type %s is handed over by messages, whatever its slot", async (type) => {
      const sides = sidesOf(type, redisson(holdfast), there, nodes);
      for (const name of ["order", "order:{42}", "{t}x"]) {
        count += 1;
        await expectShared(`${name}${count}`, sides);
      }
    });

    test("permits of both kinds and a latch pass between Java and Node by messages, in any slot", () =>
      expectCounted(redisson(holdfast), there));

    test(
      "nothing is lost and nobody is left out, with both sides of every type at random",
      {
        timeout: ELSEWHERE_MS + 120_000,
      },
      () => expectContended(redisson(holdfast), there, nodes, `cluster, Redisson ${version}, ${mode}`),
    );
  });
});

describe.each(["4.7.0", "3.21.3"] as const)("behind Sentinel, Redisson %s", (version) => {
  let java: Peer;
  let sentinel: RedisSentinel;
  let master: Redis;
  let holdfast: Holdfast;
  let there: JavaClient;

  beforeAll(async () => {
    java = startRedisson(version);
    // A long timeout, because a stalled machine must not cause a failover here.
    sentinel = await startSentinel({ replicas: 1, downAfterMs: 60_000 });
    master = new Redis({ sentinels: [...sentinel.addresses], name: sentinel.name });
    holdfast = createHoldfast({ redis: master });
    const addresses = sentinel.addresses.map(({ host, port }) => `redis://${host}:${port}`);
    const watchdogMs = JAVA_WATCHDOG_MS;
    there = await connectTo(java, { mode: "sentinel", master: sentinel.name, addresses, watchdogMs });
  }, START_MS);
  afterAll(async () => {
    await holdfast.close();
    master.disconnect();
    await java.stop();
    await sentinel.stop();
  });

  test.each(TYPES)("a lock of type %s is handed over by messages", async (type) => {
    count += 1;
    await expectShared(`watched:${count}`, sidesOf(type, redisson(holdfast), there, master));
  });

  test("permits of both kinds and a latch pass between Java and Node by messages", () =>
    expectCounted(redisson(holdfast), there));

  test(
    "nothing is lost and nobody is left out, with both sides of every type at random",
    {
      timeout: ELSEWHERE_MS + 120_000,
    },
    () => expectContended(redisson(holdfast), there, master, `Sentinel, Redisson ${version}`),
  );
});
