/** Defects of the Java lock of article C, each shown with the real program. */

import { javaGetSet, timestampLock } from "@holdfast/interop/timestamp";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../tests/support/tcp-proxy.js";
import { type Peer, startJedis } from "./peer.js";

const LEASE_MS = 60_000;
const PATIENCE_MS = 40_000;
const AT_MS = 1_700_000_000_500;

let redis: RedisServer;
let proxy: TcpProxy;
let java: Peer;
let count = 0;

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startProxy(redis.port);
  java = startJedis();
});
afterAll(async () => {
  await java.stop();
  await proxy.close();
  await redis.stop();
});

interface Settings {
  readonly port?: number;
  readonly leaseMs?: number;
  /** @default 0: one attempt, followed by a pause */
  readonly waitMs?: number;
  readonly clockAheadMs?: number;
  readonly clockAtMs?: number;
  readonly keySerializer?: "string" | "java";
}

/** A lock object in the JVM. */
interface LockObject {
  lock(thread?: string): Promise<boolean>;
  unlock(thread?: string): Promise<boolean>;
}

async function object(name: string, settings: Settings = {}): Promise<LockObject> {
  count += 1;
  const lock = `object ${count}`;
  await java.call("create", { lock, name, port: redis.port, waitMs: 0, ...settings });
  return {
    lock: (thread = lock) => java.call("lock", { lock, thread }),
    unlock: (thread = lock) => java.call("unlock", { lock, thread }),
  };
}

function account(): { name: string; key: string } {
  count += 1;
  return { name: `account:${count}`, key: `account:${count}_lock` };
}

test("a holder excludes another client, which gets the lock after the release", async () => {
  const { name } = account();
  const one = await object(name);
  const other = await object(name, { waitMs: 10_000 });
  const third = await object(name);
  expect(await one.lock()).toBe(true);
  expect(await third.lock()).toBe(false);
  const waiting = other.lock();
  await one.unlock();
  expect(await waiting).toBe(true);
  await third.unlock();
  expect(await third.lock()).toBe(false);
});

test("C1: the lock of a crashed holder has no expiry", async () => {
  const { name, key } = account();
  const crashed = startJedis();
  await crashed.call("create", { name, port: redis.port });
  expect(await crashed.call("lock")).toBe(true);
  await crashed.kill();
  expect(await redis.command("PTTL", key)).toBe(-1);
});

test("C2: of two clients that see an expired lock one wins, and the other one overwrites its deadline", async () => {
  const { name, key } = account();
  await redis.command("SET", key, AT_MS - 1);
  const winner = await object(name, { clockAtMs: AT_MS });
  const loser = await object(name, { clockAtMs: AT_MS + 2_000, port: proxy.port });
  const takeover = proxy.hold(/^GETSET/);
  const late = loser.lock();
  await takeover.reached;
  expect(await winner.lock()).toBe(true);
  takeover.release();
  expect(await late).toBe(false);
  expect(await redis.command("GET", key)).toBe(`${AT_MS + 2_000 + LEASE_MS + 1}`);
});

test("C3: a release just before a takeover leaves a lock that nobody holds and nobody can take", async () => {
  const { name, key } = account();
  await redis.command("SET", key, AT_MS - 1);
  const waiter = await object(name, { clockAtMs: AT_MS, port: proxy.port });
  const takeover = proxy.hold(/^GETSET/);
  const waiting = waiter.lock();
  await takeover.reached;
  await redis.command("DEL", key);
  takeover.release();
  expect(await waiting).toBe(false);
  expect(await redis.command("GET", key)).toBe(`${AT_MS + LEASE_MS + 1}`);
  expect(await waiter.lock()).toBe(false);
});

test("C4: a waiter that was paused before its takeover revives a lock that expired meanwhile", async () => {
  const { name, key } = account();
  await redis.command("SET", key, AT_MS - 100);
  const waiter = await object(name, { clockAtMs: AT_MS, port: proxy.port });
  const takeover = proxy.hold(/^GETSET/);
  const waiting = waiter.lock();
  await takeover.reached;
  await redis.command("SET", key, AT_MS - 50);
  takeover.release();
  expect(await waiting).toBe(false);
  expect(await redis.command("GET", key)).toBe(`${AT_MS + LEASE_MS + 1}`);
});

test("C5, C17: a holder that overruns its lease works beside the next holder, and deletes its lock", async () => {
  const { name, key } = account();
  const [late, next, third] = [await object(name), await object(name), await object(name)];
  await late.lock();
  await redis.command("SET", key, Date.now() - 5_000);
  expect(await next.lock()).toBe(true);
  await late.unlock();
  expect(await third.lock()).toBe(true);
});

test("C6: a thread without the lock releases the lock of another thread with the same object", async () => {
  const { name, key } = account();
  const shared = await object(name);
  expect(await shared.lock("first")).toBe(true);
  expect(await shared.lock("second")).toBe(false);
  await shared.unlock("second");
  expect(await redis.command("EXISTS", key)).toBe(0);
});

test("C7: while one thread waits with the object, the holder cannot release the lock", async () => {
  const { name } = account();
  const shared = await object(name, { waitMs: 1_000 });
  expect(await shared.lock("first")).toBe(true);
  const attempts = await setnxCalls();
  const waiting = shared.lock("second");
  await until(async () => (await setnxCalls()) > attempts, "the second thread asks");
  const leaving = shared.unlock("first");
  // If the holder had released during the wait, the waiter would hold the lock. The two replies may arrive in any
  // order.
  expect(await waiting).toBe(false);
  await leaving;
});

test("C8: without a serializer of keys the lock is never released", async () => {
  const { name, key } = account();
  const misconfigured = await object(name, { keySerializer: "java" });
  await misconfigured.lock();
  await misconfigured.unlock();
  expect(await redis.command("EXISTS", key)).toBe(1);
});

test.each([
  [1_000, 11],
  [0, 1],
  [-1, 0],
])("C9: with a wait of %d ms it asks %d times, since it counts its pauses and not the time", async (waitMs, asked) => {
  const { name, key } = account();
  await redis.command("SET", key, Date.now() + 1_000_000);
  const waiter = await object(name, { waitMs });
  const before = await setnxCalls();
  expect(await waiter.lock()).toBe(false);
  expect((await setnxCalls()) - before).toBe(asked);
});

test("C10: if the reply to a grant is lost, nobody holds the lock for its whole lease", async () => {
  const { name, key } = account();
  const waiter = await object(name, { port: proxy.port });
  const lost = proxy.cutBeforeReply(/^SETNX/);
  expect(await waiter.lock()).toBe(false);
  await lost;
  expect(await redis.command("EXISTS", key)).toBe(1);
  await waiter.unlock();
  expect(await redis.command("EXISTS", key)).toBe(1);
});

test.each(["1700000000.5", "held by somebody"])("C11: a value of %s makes it throw", async (value) => {
  const { name, key } = account();
  await redis.command("SET", key, value);
  await expect((await object(name)).lock()).rejects.toMatchObject({ kind: "NumberFormatException" });
});

test.each([
  [LEASE_MS + 1, false],
  [LEASE_MS + 2, true],
])("C12, C13: a clock that is %d ms ahead of a lock just taken gets in: %s", async (aheadMs, isIn) => {
  const { name } = account();
  await (await object(name, { clockAtMs: AT_MS })).lock();
  expect(await (await object(name, { clockAtMs: AT_MS + aheadMs })).lock()).toBe(isIn);
});

test("C14: two clients write the same value in one millisecond, so it does not identify the holder", async () => {
  const [one, other] = [account(), account()];
  await (await object(one.name, { clockAtMs: AT_MS })).lock();
  await (await object(other.name, { clockAtMs: AT_MS })).lock();
  expect(await redis.command("GET", one.key)).toBe(await redis.command("GET", other.key));
});

test("C15: a holder that acquires again waits for itself", async () => {
  const { name } = account();
  const one = await object(name, { waitMs: 300 });
  expect(await one.lock()).toBe(true);
  expect(await one.lock()).toBe(false);
});

test("C16: a client that asks during the pause of an earlier waiter overtakes it each time; callers of Holdfast are served in turn", async () => {
  const { name } = account();
  const early = await object(name, { waitMs: 400, port: proxy.port });
  let [holder, late] = [await object(name), await object(name)];
  expect(await holder.lock()).toBe(true);
  let asking = proxy.hold(/^SETNX/);
  const waiting = early.lock();
  for (let attempts = 5; attempts > 0; attempts -= 1) {
    await asking.reached;
    // The lock is free for a moment, which a newcomer can use.
    await holder.unlock();
    expect(await late.lock()).toBe(true);
    [holder, late] = [late, holder];
    const asked = asking;
    if (attempts > 1) asking = proxy.hold(/^SETNX/);
    asked.release();
  }
  expect(await waiting).toBe(false);

  const client = new Redis(redis.url);
  const holdfast = createHoldfast({ redis: client });
  const lock = timestampLock(holdfast, name, javaGetSet);
  const served: number[] = [];
  const waits = [0, 1, 2, 3].map((place) => lock.run(() => void served.push(place), { waitMs: PATIENCE_MS }));
  await holder.unlock();
  await Promise.all(waits);
  expect(served).toEqual([0, 1, 2, 3]);
  await holdfast.close();
  client.disconnect();
});

async function setnxCalls(): Promise<number> {
  return (await redis.commandStats()).setnx ?? 0;
}
