/** Redisson and Holdfast under faults: lost replies, scripts and connections, and one name used for two types. */

import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { AcquireTimeoutError, createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy } from "../../tests/support/tcp-proxy.js";
import { type Contender, contendHere, ELSEWHERE_MS, type Held, tell } from "./contention.js";
import { type Peer, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread, inVain, LONG_LEASE_MS, PATIENCE_MS, WATCHDOG_MS } from "./sides.js";

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
  return `troubled:${count}`;
}

/** The number of subscribers to the channel on which Redisson waits for that lock. */
async function listeners(name: string): Promise<number> {
  const [, listening] = (await redis.pubsub("NUMSUB", `redisson_lock__channel:{${name}}`)) as [string, number];
  return Number(listening);
}

test("the same name mapper on both sides leads to the same lock", async () => {
  const name = fresh();
  const mapped = await connect(java, { port: server.port, prefix: "shop:" });
  const ours = redisson(holdfast, { nameMapper: (plain) => `shop:${plain}` });
  const lease = await ours.lock(name).acquire({ leaseMs: LONG_LEASE_MS });
  expect(await redis.exists(`shop:${name}`)).toBe(1);
  expect(await there.call("tryLock", { name }), "without it another one is meant").toBe(true);
  expect(await mapped.call("tryLock", { name })).toBe(false);
  const waiting = freshThread(mapped).call("tryLock", { name, waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  expect(await lease.release()).toBe("released");
  expect(await waiting).toBe(true);
  expect(await ours.lock(name).tryAcquire()).toBeNull();
});

test("an acquire of Java whose reply is lost leaves a lock without a holder; one of Node holds it, once", async () => {
  const [theirs, ours] = [fresh(), fresh()];
  const proxy = await startProxy(server.port);
  const cutThere = await connect(java, { port: proxy.port, watchdogMs: WATCHDOG_MS, timeoutMs: 1_000 });
  const lostThere = proxy.cutBeforeReply(new RegExp(`EVAL.* ${theirs} `));
  await expect(cutThere.call("tryLock", { name: theirs })).rejects.toThrow();
  await lostThere;
  expect(await redis.hvals(theirs)).toEqual(["1"]);
  // The hold is not renewed, so a waiter gets the lock when the lease ends.
  const next = await here.lock(theirs).acquire({ waitMs: PATIENCE_MS });
  expect(await next.release()).toBe("released");

  const cutHere = new Redis(`redis://127.0.0.1:${proxy.port}`);
  const holdfastHere = createHoldfast({ redis: cutHere });
  const lostHere = proxy.cutBeforeReply(new RegExp(`evalsha.* ${ours} `, "i"));
  const lease = await redisson(holdfastHere).lock(ours).acquire({ leaseMs: LONG_LEASE_MS });
  await lostHere;
  expect(await redis.hgetall(ours)).toEqual({ [lease.owner]: "1" });
  expect(await lease.release()).toBe("released");
  expect(await there.call("tryLock", { name: ours })).toBe(true);
  await holdfastHere.close();
  cutHere.disconnect();
  await proxy.close();
});

test("an unlock whose reply is lost succeeds, and its second copy does not harm the next holder", async () => {
  const [ours, theirs] = [fresh(), fresh()];
  const proxy = await startProxy(server.port);
  const cutHere = new Redis(`redis://127.0.0.1:${proxy.port}`);
  const holdfastHere = createHoldfast({ redis: cutHere });
  const lease = await redisson(holdfastHere).lock(ours).acquire({ leaseMs: LONG_LEASE_MS });
  const heir = freshThread(there);
  const waiting = heir.call("tryLock", { name: ours, waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  await until(async () => (await listeners(ours)) === 1, "Java listens");
  const lostHere = proxy.cutBeforeReply(new RegExp(`evalsha.* redisson_unlock_latch:\\{${ours}\\}:`, "i"));
  expect(await lease.release()).toBe("released");
  await lostHere;
  expect(await waiting).toBe(true);
  expect(await redis.hgetall(ours)).toEqual({ [await heir.owner()]: "1" });
  expect(await heir.call("unlock", { name: ours })).toBe(true);
  await until(async () => (await redis.keys(`redisson_unlock_latch*${ours}*`)).length === 0, "the latch is gone");

  // Java resends the request too, and its unlock latch has the result of the first copy.
  const cutThere = await connect(java, { port: proxy.port, timeoutMs: 1_000 });
  const holder = freshThread(cutThere);
  await holder.call("lock", { name: theirs, leaseMs: LONG_LEASE_MS });
  const next = here.lock(theirs).acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  const lostThere = proxy.cutBeforeReply(new RegExp(`EVAL.* redisson_unlock_latch:\\{${theirs}\\}:`));
  const unlocked = holder.call("unlock", { name: theirs });
  unlocked.catch(() => {});
  await lostThere;
  const after = await next;
  await unlocked.catch(() => {});
  expect(await redis.hgetall(theirs)).toEqual({ [after.owner]: "1" });
  expect(await after.release()).toBe("released");
  await holdfastHere.close();
  cutHere.disconnect();
  await proxy.close();
});

test("scripts that the server has forgotten are sent again by both sides", async () => {
  const name = fresh();
  for (let round = 0; round < 3; round += 1) {
    const lease = await here.lock(name).acquire({ leaseMs: LONG_LEASE_MS });
    await redis.script("FLUSH");
    expect(await there.call("tryLock", { name })).toBe(false);
    const waiting = freshThread(there).call("tryLock", { name, waitMs: PATIENCE_MS, leaseMs: 200 });
    await redis.script("FLUSH");
    expect(await lease.release()).toBe("released");
    expect(await waiting).toBe(true);
  }
});

test("a waiter receives messages again after its connection was lost", async () => {
  const name = fresh();
  const lease = await here.lock(name).acquire({ leaseMs: LONG_LEASE_MS });
  const javaWaits = freshThread(there).call("tryLock", { name, waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  await until(async () => (await listeners(name)) === 1, "Java listens");
  await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await until(async () => (await listeners(name)) === 1, "Java listens again");
  expect(await lease.release()).toBe("released");
  expect(await javaWaits).toBe(true);

  const other = fresh();
  const holder = freshThread(there);
  await holder.call("lock", { name: other, leaseMs: LONG_LEASE_MS });
  const nodeWaits = here.lock(other).acquire({ waitMs: PATIENCE_MS });
  await until(async () => (await listeners(other)) === 1, "Node listens");
  await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await until(async () => (await listeners(other)) === 1, "Node listens again");
  await holder.call("unlock", { name: other });
  expect(await (await nodeWaits).release()).toBe("released");
});

test("a spin lock of Node wakes an RLock of Java that waits for it; a spin lock of Java does not", async () => {
  const name = fresh();
  const lease = await here.spinLock(name).acquire({ leaseMs: LONG_LEASE_MS });
  const waiting = freshThread(there).call("tryLock", { name, waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  await until(async () => (await listeners(name)) === 1, "Java listens");
  expect(await lease.release()).toBe("released");
  expect(await waiting).toBe(true);

  const other = fresh();
  const holder = freshThread(there);
  await holder.call("lock", { type: "spin", name: other, leaseMs: LONG_LEASE_MS });
  const nodeWaits = here.lock(other).acquire({ waitMs: PATIENCE_MS });
  await holder.call("unlock", { type: "spin", name: other });
  expect(await (await nodeWaits).release()).toBe("released");
});

test("a name that Java uses for another type is refused, and its key stays unchanged", async () => {
  const [plain, shared, counted] = [fresh(), fresh(), fresh()];
  await there.call("lock", { name: plain, leaseMs: LONG_LEASE_MS });
  await there.call("lock", { type: "read", name: shared, leaseMs: LONG_LEASE_MS });
  await there.call("semaphore.trySetPermits", { name: counted, permits: 2 });
  const before = await Promise.all([redis.hgetall(plain), redis.hgetall(shared), redis.get(counted)]);
  await expect(here.readWriteLock(plain).read.tryAcquire()).rejects.toThrow();
  await expect(here.readWriteLock(plain).write.tryAcquire()).rejects.toThrow();
  await expect(here.semaphore(plain).tryAcquire()).rejects.toThrow();
  await expect(here.lock(shared).tryAcquire()).rejects.toThrow();
  await expect(here.fairLock(shared).tryAcquire()).rejects.toThrow();
  await expect(here.lock(counted).tryAcquire()).rejects.toThrow();
  expect(await Promise.all([redis.hgetall(plain), redis.hgetall(shared), redis.get(counted)])).toEqual(before);
});

test("a holder of Node is notified of the loss of its lock; one of Java notices when it unlocks", async () => {
  const [ours, theirs] = [fresh(), fresh()];
  const lease = await here.lock(ours).acquire({ leaseMs: 1_000 });
  await there.call("forceUnlock", { name: ours });
  await until(() => lease.signal.aborted, "our holder is told");
  await expect(lease.release()).rejects.toThrow();

  const quick = await connect(java, { port: server.port, watchdogMs: 6_000 });
  const holder = freshThread(quick);
  await holder.call("lock", { name: theirs });
  const [owner = ""] = await redis.hkeys(theirs);
  expect(await here.lock(theirs).forceRelease({ owner })).toBe(true);
  const next = await here.lock(theirs).acquire({ leaseMs: LONG_LEASE_MS });
  // Its renewals find nothing and do not recreate the lock.
  expect(await holder.call("isHeld", { name: theirs })).toBe(false);
  await expect(holder.call("unlock", { name: theirs })).rejects.toMatchObject({ kind: "IllegalMonitorStateException" });
  expect(await next.release()).toBe("released");
});

test.each([
  ["nonReentrant", "lock"],
  ["nonReentrantFair", "fairLock"],
] as const)("a %s lock of Java is a %s here: it excludes and wakes, and refuses itself", async (type, ofType) => {
  const name = fresh();
  const holder = freshThread(there);
  await holder.call("lock", { type, name, leaseMs: LONG_LEASE_MS });
  await expect(holder.call("tryLock", { type, name })).rejects.toMatchObject({ kind: "IllegalMonitorStateException" });
  expect(await freshThread(there).call("tryLock", { name }), "also an RLock of Java").toBe(false);
  const lock = here[ofType](name);
  expect(await lock.tryAcquire()).toBeNull();
  const waiting = lock.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  await holder.call("unlock", { type, name });
  const lease = await waiting;
  const next = freshThread(there);
  expect(await next.call("tryLock", { type, name })).toBe(false);
  const javaWaits = next.call("tryLock", { type, name, waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  expect(await lease.release()).toBe("released");
  expect(await javaWaits).toBe(true);
  expect(await lock.tryAcquire()).toBeNull();
});

test("multi-locks in opposite orders on both sides: every wait ends in time, and no update is lost", async () => {
  const [a, b] = [fresh(), fresh()];
  const counter = `counter of ${a}`;
  await redis.set(counter, 0);
  const bound = { waitMs: 300 };
  const lock = here.multiLock([a, b]);
  const values = { type: "multi", names: [b, a], counter, forMs: ELSEWHERE_MS, ...bound };
  const acquire = (): Promise<Held | null> => inVain(() => lock.acquire(bound).catch(unlessTimedOut));
  const all = await Promise.all([
    freshThread(there).call<Contender>("contend", values),
    contendHere(redis, counter, acquire, ELSEWHERE_MS),
    contendHere(redis, counter, acquire, ELSEWHERE_MS),
  ]);
  const report = JSON.stringify(all);
  tell("multi, in opposite orders", report);
  const total = all.reduce((sum, { rounds }) => sum + rounds, 0);
  expect(total, report).toBeGreaterThan(0);
  expect(Number(await redis.get(counter)), report).toBe(total);
  for (const { longestWaitMs } of all) expect(longestWaitMs, report).toBeLessThan(PATIENCE_MS);
  // Both sides have released both locks.
  const lease = await lock.acquire({ waitMs: PATIENCE_MS });
  expect(await lease.release()).toBe("released");
});

function unlessTimedOut(error: unknown): null {
  if (error instanceof AcquireTimeoutError) return null;
  throw error;
}
