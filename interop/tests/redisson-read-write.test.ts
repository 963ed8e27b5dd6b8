/** Redisson's read-write lock with readers and writers on both sides. */

import { type RedissonReadWriteLock, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { CONTENTION_MS, type Contender, contendHere, IS_LONG_RUN, tell, watchHere } from "./contention.js";
import { type Peer, REDISSONS, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread, javaSide, LONG_LEASE_MS, nodeSide, PATIENCE_MS, type Side, WATCHDOG_MS } from "./sides.js";

const SHORT_LEASE_MS = 1_000;
/** The longest lease of a Holdfast reader: the watchdog timeout of the Java services. */
const READ_LEASE_MS = 30_000;

let count = 0;

describe.each(REDISSONS)("Redisson %s", (version) => {
  let server: RedisServer;
  let redis: Redis;
  let holdfast: Holdfast;
  let java: Peer;
  let client: JavaClient;

  beforeAll(async () => {
    java = startRedisson(version);
    server = await startRedis();
    redis = new Redis(server.url);
    holdfast = createHoldfast({ redis });
    client = await connect(java, { port: server.port });
  });
  afterAll(async () => {
    await holdfast.close();
    redis.disconnect();
    await java.stop();
    await server.stop();
  });

  function fresh(): string {
    count += 1;
    return `document:${count}`;
  }

  const node = (name: string): RedissonReadWriteLock => redisson(holdfast).readWriteLock(name);
  const nodeReader = (): Side => nodeSide(redis, (name) => node(name).read);
  const nodeWriter = (): Side => nodeSide(redis, (name) => node(name).write);
  const javaReader = (of = client): Side => javaSide(of, (name) => ({ type: "read", name }));
  const javaWriter = (of = client): Side => javaSide(of, (name) => ({ type: "write", name }));

  function must<Value>(value: Value | null): Value {
    if (value === null) throw new Error("it was not granted");
    return value;
  }

  const leftOver = async (name: string): Promise<string[]> =>
    (await redis.keys(`*${name}*`)).filter((key) => !key.includes("redisson_unlock_latch"));

  test.each([
    ["Java", "Node", javaReader, nodeReader],
    ["Node", "Java", nodeReader, javaReader],
  ])("a reader of %s that leaves first does not end the hold of a reader of %s", async (_x, _y, first, second) => {
    const name = fresh();
    const one = must(await first().tryHold(name, READ_LEASE_MS));
    const other = must(await second().tryHold(name, READ_LEASE_MS));
    expect(await one.release()).toBe(true);
    expect(await redis.hget(name, "mode")).toBe("read");
    for (const writer of [javaWriter(), nodeWriter()]) expect(await writer.tryHold(name)).toBeNull();
    expect(await other.release()).toBe(true);
    expect(await leftOver(name)).toEqual([]);
    for (const writer of [javaWriter(), nodeWriter()]) {
      expect(await must(await writer.tryHold(name, LONG_LEASE_MS)).release()).toBe(true);
    }
  });

  test.each([
    ["Java", "Node", javaReader, nodeReader],
    ["Node", "Java", nodeReader, javaReader],
  ])(
    "when a reader of %s leaves, the lock lives on for as long as the reader of %s may",
    async (_x, _y, first, second) => {
      const name = fresh();
      const long = must(await second().tryHold(name, 20_000));
      const short = must(await first().tryHold(name, READ_LEASE_MS));
      expect(await short.release()).toBe(true);
      const leftMs = await redis.pttl(name);
      expect(leftMs).toBeGreaterThan(0);
      // Java recomputes the expiry from the keys of the holds. Holdfast never shortens an expiry that other readers
      // rely on.
      expect(leftMs).toBeLessThanOrEqual(READ_LEASE_MS);
      expect(await long.release()).toBe(true);
    },
  );

  test("three holds of one Java reader and one of Node: each unlock of Java removes one of its own", async () => {
    const read = { type: "read", name: fresh() };
    const thread = freshThread(client);
    const lease = await node(read.name).read.acquire({ leaseMs: READ_LEASE_MS });
    for (let hold = 0; hold < 3; hold += 1) await thread.call("lock", { ...read, leaseMs: READ_LEASE_MS });
    expect(await redis.hget(read.name, await thread.owner())).toBe("3");
    for (let hold = 0; hold < 3; hold += 1) await thread.call("unlock", read);
    expect(await redis.hkeys(read.name)).toEqual(["mode", lease.owner]);
    await lease.extend(READ_LEASE_MS);
    expect(await lease.release()).toBe("released");
    expect(await leftOver(read.name)).toEqual([]);
  });

  test("a reader of Node that is renewed outlives the lease that Java's renewals give to the whole lock", async () => {
    const name = fresh();
    const quick = await connect(java, { port: server.port, watchdogMs: WATCHDOG_MS });
    const lock = redisson(holdfast, { watchdogMs: WATCHDOG_MS }).readWriteLock(name);
    const lease = await lock.read.acquire({ leaseMs: WATCHDOG_MS });
    const there = must(await javaReader(quick).tryHold(name));
    const overAtMs = Date.now() + 2 * WATCHDOG_MS;
    while (Date.now() <= overAtMs) expect(await javaWriter().tryHold(name)).toBeNull();
    expect(await there.release()).toBe(true);
    expect(await javaWriter().tryHold(name)).toBeNull();
    expect(await lease.release()).toBe("released");
  });

  test.each([
    ["Java", javaWriter],
    ["Node", nodeWriter],
  ])("a writer of %s keeps out all others, and its end lets all readers in", async (_, writer) => {
    const name = fresh();
    const hold = must(await writer().tryHold(name, LONG_LEASE_MS));
    for (const side of [javaReader(), nodeReader(), javaWriter(), nodeWriter()]) {
      expect(await side.tryHold(name)).toBeNull();
    }
    const readers = [javaReader(), javaReader(), nodeReader(), nodeReader()];
    const waiting = readers.map((side) => side.waitFor(name, PATIENCE_MS, READ_LEASE_MS));
    expect(await hold.release()).toBe(true);
    const holds = (await Promise.all(waiting)).map(must);
    expect(await redis.hlen(name), "all four and the mode").toBe(5);
    for (const each of holds) expect(await each.release()).toBe(true);
    expect(await leftOver(name)).toEqual([]);
  });

  test.each([
    ["Java", javaWriter],
    ["Node", nodeWriter],
  ])("a writer of %s comes in when the last reader has left, whichever side that is on", async (_, writer) => {
    for (const last of ["Java", "Node"]) {
      const name = fresh();
      const [there, here] = [
        must(await javaReader().tryHold(name, READ_LEASE_MS)),
        must(await nodeReader().tryHold(name, READ_LEASE_MS)),
      ];
      const waiting = writer().waitFor(name, PATIENCE_MS, LONG_LEASE_MS);
      const order = last === "Java" ? [here, there] : [there, here];
      for (const each of order) expect(await each.release()).toBe(true);
      expect(await must(await waiting).release()).toBe(true);
    }
  });

  test("readers of Java are notified when a writer of Node is downgraded to a reader", async () => {
    const name = fresh();
    const lease = await node(name).write.acquire({ leaseMs: READ_LEASE_MS });
    const waiting = javaReader().waitFor(name, PATIENCE_MS, READ_LEASE_MS);
    const reading = await lease.downgrade();
    const there = must(await waiting);
    expect(await javaWriter().tryHold(name)).toBeNull();
    expect(await reading.release()).toBe("released");
    expect(await there.release()).toBe(true);
    expect(await leftOver(name)).toEqual([]);
  });

  test("readers of Node get the lock when a writer of Java is downgraded to a reader, which notifies nobody", async () => {
    const name = fresh();
    const thread = freshThread(client);
    await thread.call("lock", { type: "write", name, leaseMs: READ_LEASE_MS });
    await thread.call("lock", { type: "read", name, leaseMs: READ_LEASE_MS });
    const waiting = nodeReader().waitFor(name, PATIENCE_MS, READ_LEASE_MS);
    await thread.call("unlock", { type: "write", name });
    const here = must(await waiting);
    await thread.call("unlock", { type: "read", name });
    expect(await here.release()).toBe(true);
    expect(await leftOver(name)).toEqual([]);
  });

  test.each([
    ["Java", "Node", javaReader, nodeWriter],
    ["Node", "Java", nodeReader, javaWriter],
  ])(
    "a reader of %s that dies is followed by a writer of %s when its lease is over",
    async (_x, _y, reader, writer) => {
      const name = fresh();
      const hold = must(await reader().tryHold(name, SHORT_LEASE_MS));
      const next = must(await writer().waitFor(name, PATIENCE_MS, LONG_LEASE_MS));
      // If there is no holder, the older releases do not report it.
      expect(await hold.release()).toBe(false);
      expect(await next.release()).toBe(true);
    },
  );

  test.each([
    ["Java", "Node", javaReader, nodeReader],
    ["Node", "Java", nodeReader, javaReader],
  ])("what a reader of %s holds can be ended by %s", async (_x, _y, reader, other) => {
    const name = fresh();
    const hold = must(await reader().tryHold(name, READ_LEASE_MS));
    const waiting = javaWriter().waitFor(name, PATIENCE_MS, LONG_LEASE_MS);
    expect(await other().force(name)).toBe(true);
    const next = must(await waiting);
    expect(await hold.release()).toBe(false);
    expect(await next.release()).toBe(true);
  });

  // As in redisson-locks, the older releases contend only in long runs.
  if (version !== REDISSONS[0] && !IS_LONG_RUN) return;
  test("writers of both sides lose no update, and no reader of either sees one, at random", {
    timeout: CONTENTION_MS + 60_000,
  }, async () => {
    const name = fresh();
    const counter = `counter of ${name}`;
    await redis.set(counter, 0);
    const values = { type: "read", name, counter, forMs: CONTENTION_MS, waitMs: PATIENCE_MS };
    const acquireRead = (): ReturnType<RedissonReadWriteLock["read"]["acquire"]> =>
      node(name).read.acquire({ waitMs: PATIENCE_MS });
    const acquireWrite = (): ReturnType<RedissonReadWriteLock["write"]["acquire"]> =>
      node(name).write.acquire({ waitMs: PATIENCE_MS });
    const [there, here, ...writers] = await Promise.all([
      freshThread(client).call<Contender & { changes: number }>("watch", values),
      watchHere(redis, counter, acquireRead),
      freshThread(client).call<Contender>("contend", { ...values, type: "write" }),
      contendHere(redis, counter, acquireWrite),
    ]);
    const report = JSON.stringify({ there, here, writers });
    tell(`Redisson ${version}, read-write`, report);
    expect([there.changes, here.changes], report).toEqual([0, 0]);
    const total = writers.reduce((sum, { rounds }) => sum + rounds, 0);
    expect(Number(await redis.get(counter)), report).toBe(total);
    for (const each of [there, here, ...writers]) {
      expect(each.rounds, report).toBeGreaterThan(0);
      expect(each.longestWaitMs, report).toBeLessThanOrEqual(PATIENCE_MS);
    }
  });
});
