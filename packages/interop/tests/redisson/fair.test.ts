/** One fair queue for Node and Java: first come, first served. A crashed waiter delays others only to its deadline. */

import { LeaseLostError } from "holdfast";
import { expect, test, vi } from "vitest";
import { systemRuntime } from "../../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../../holdfast/src/holdfast.js";
import { redisson } from "../../src/redisson/index.js";
import { fairQueueKey, fairTimeoutKey, lockChannel } from "../../src/redisson/names.js";
import { useScene } from "./scene.js";
import type { Held } from "./side.js";

const scene = useScene();
const LONG_MS = 50_000;
const WOKEN_MS = 3_500;

const queued = (name: string, count: number): Promise<void> =>
  vi.waitFor(async () => expect(await scene.redis.llen(fairQueueKey(name))).toBe(count), 10_000);
const queueOf = (name: string): Promise<string[]> => scene.redis.lrange(fairQueueKey(name), 0, -1);
const deadlineOf = async (name: string, owner: string): Promise<number> =>
  Number(await scene.redis.zscore(fairTimeoutKey(name), owner));
const serverNowMs = async (): Promise<number> => {
  const [seconds, micros] = await scene.redis.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
};
const hold = async (name: string): Promise<Held> => {
  const held = await scene.java().acquire({ type: "fair", name }, { waitMs: 0, leaseMs: LONG_MS });
  return held as Held;
};

test("Java and Node waiters are served in the order in which they came", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const first = await hold(name);
  const served: string[] = [];
  const ends: Promise<unknown>[] = [];
  for (const [i, who] of ["Java", "Node", "Java", "Node", "Node", "Java"].entries()) {
    const serve = async (): Promise<void> => {
      if (who === "Node") {
        await node.locks.fairLock(name).run(() => void served.push(`${who} ${i}`), { waitMs: 15_000 });
        return;
      }
      const held = await java.acquire({ type: "fair", name }, { waitMs: 15_000, leaseMs: LONG_MS });
      served.push(`${who} ${i}`);
      await held?.unlock();
    };
    ends.push(serve());
    await queued(name, i + 1);
  }
  await first.unlock();
  await Promise.all(ends);
  expect(served).toEqual(["Java 0", "Node 1", "Java 2", "Node 3", "Node 4", "Java 5"]);
  expect((await scene.redis.keys(`*${name}*`)).filter((key) => !key.includes("latch"))).toEqual([]);
});

test("a latecomer does not acquire a free lock ahead of the waiters", async () => {
  const [name, node] = [scene.name(), scene.node()];
  await scene.redis.rpush(fairQueueKey(name), "waiter");
  await scene.redis.zadd(fairTimeoutKey(name), (await serverNowMs()) + LONG_MS, "waiter");
  expect(await node.locks.fairLock(name).tryAcquire()).toBeNull();
  expect(await queueOf(name), "an attempt does not queue").toEqual(["waiter"]);
});

test("a dead waiter is skipped at its deadline, not before, without constant polling", async () => {
  const [name, node] = [scene.name(), scene.node()];
  await scene.redis.rpush(fairQueueKey(name), "dead");
  const deadlineMs = Math.ceil(await serverNowMs()) + 1_200;
  await scene.redis.zadd(fairTimeoutKey(name), deadlineMs, "dead");
  await using lease = await node.locks.fairLock(name).acquire({ waitMs: 15_000 });
  expect(await serverNowMs()).toBeGreaterThanOrEqual(deadlineMs);
  expect(node.sent.filter((script) => script === "fair/acquire").length).toBeLessThan(10);
  lease.assertHeld();
});

test("a crashed waiter delays those behind it no longer than its own wait", async () => {
  const [name, node, mortal] = [scene.name(), scene.node(), scene.java()];
  const first = await hold(name);
  await scene.redis.pexpire(name, 3_000);
  void mortal.acquire({ type: "fair", name }, { waitMs: 2_000, leaseMs: LONG_MS }).catch(() => {});
  await queued(name, 1);
  await mortal.die();
  const waiting = node.locks.fairLock(name).acquire({ waitMs: 15_000 });
  await queued(name, 2);
  const [dead = ""] = await queueOf(name);
  const deadlineMs = await deadlineOf(name, dead);
  await using lease = await waiting;
  expect(await serverNowMs()).toBeGreaterThanOrEqual(deadlineMs);
  lease.assertHeld();
  expect(await first.unlock().catch(() => false)).toBe(false);
});

test("8: a queue head without a deadline is removed and delays no other waiter", async () => {
  const [name, node] = [scene.name(), scene.node()];
  await scene.redis.rpush(fairQueueKey(name), "ghost", "other ghost");
  const lease = await node.locks.fairLock(name).tryAcquire();
  expect(lease).not.toBeNull();
  expect(await queueOf(name)).toEqual([]);
  await lease?.release();
});

test("8: releasing an expired lock reports a loss and wakes the first waiter", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const lease = await node.locks.fairLock(name).acquire({ leaseMs: LONG_MS });
  const waiting = java.acquire({ type: "fair", name }, { waitMs: WOKEN_MS, leaseMs: LONG_MS });
  await queued(name, 1);
  const [waiter] = await queueOf(name);
  await scene.listening(`${lockChannel(name)}:${waiter}`);
  await scene.redis.del(name);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  expect(await (await waiting)?.unlock()).toBe(true);
});

test("8: a waiter that gives up leaves immediately and shortens the deadlines behind it", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const first = await hold(name);
  const controller = new AbortController();
  const leaving = node.locks.fairLock(name).acquire({ waitMs: 20_000, signal: controller.signal });
  leaving.catch(() => {});
  await queued(name, 1);
  const staying = java.acquire({ type: "fair", name }, { waitMs: 10_000, leaseMs: LONG_MS });
  await queued(name, 2);
  const [, second = ""] = await queueOf(name);
  const beforeMs = await deadlineOf(name, second);
  controller.abort();
  await queued(name, 1);
  expect(await queueOf(name)).toEqual([second]);
  expect(await deadlineOf(name, second)).toBe(beforeMs - 20_000);
  await first.unlock();
  expect(await (await staying)?.unlock()).toBe(true);
});

test("8: a grant message for a waiter that is giving up passes to the next waiter", async () => {
  const [name, node, other] = [scene.name(), scene.node(), scene.java()];
  const first = await hold(name);
  const controller = new AbortController();
  const leaving = node.locks.fairLock(name).acquire({ waitMs: 20_000, signal: controller.signal });
  leaving.catch(() => {});
  await queued(name, 1);
  const staying = other.acquire({ type: "fair", name }, { waitMs: WOKEN_MS, leaseMs: LONG_MS });
  await queued(name, 2);
  const [, second] = await queueOf(name);
  await scene.listening(`${lockChannel(name)}:${second}`);
  // The reply is lost because the waiter has left before it arrives.
  node.before = async ({ name: script }) => {
    if (script === "interop/redisson/fair/acquire") controller.abort();
  };
  node.loses = ({ name: script }) => script === "interop/redisson/fair/acquire";
  await first.unlock();
  expect(await (await staying)?.unlock()).toBe(true);
  await vi.waitFor(async () => {
    expect((await scene.redis.keys(`*${name}*`)).filter((key) => !key.includes("latch"))).toEqual([]);
  }, 10_000);
});

test("9: deadlines use the server's clock, not the clock of this process", async () => {
  const [name, { client }] = [scene.name(), scene.node()];
  const first = await hold(name);
  for (const aheadMs of [-60_000, 60_000]) {
    const runtime = { ...systemRuntime, wallMs: () => Date.now() + aheadMs };
    const holdfast = createHoldfastOn(runtime, { redis: client });
    const waiting = redisson(holdfast).fairLock(name).acquire({ waitMs: 10_000 });
    waiting.catch(() => {});
    await queued(name, 1);
    const [waiter = ""] = await queueOf(name);
    const leftMs = (await deadlineOf(name, waiter)) - (await serverNowMs());
    expect(leftMs).toBeGreaterThan(LONG_MS);
    expect(leftMs).toBeLessThanOrEqual(LONG_MS + 10_000);
    await holdfast.close();
    await queued(name, 0);
  }
  await first.unlock();
});

test.each([-60_000, 60_000])("Node waits beside a Java service whose clock is %d ms ahead", async (clockAheadMs) => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java({ clockAheadMs })];
  const first = await node.locks.fairLock(name).acquire({ leaseMs: LONG_MS });
  const theirs = java.acquire({ type: "fair", name }, { waitMs: 100_000, leaseMs: LONG_MS });
  await queued(name, 1);
  const ours = node.locks.fairLock(name).acquire({ waitMs: 100_000 });
  await queued(name, 2);
  await first.release();
  expect(await (await theirs)?.unlock()).toBe(true);
  expect(await (await ours).release()).toBe("released");
});

test("a waiter without a time limit keeps its place for fairWaitMs, and keeps waiting after losing it", async () => {
  const [name, node] = [scene.name(), scene.node({}, { fairWaitMs: 700 })];
  const first = await hold(name);
  await scene.redis.pexpire(name, 3_000);
  const waiting = node.locks.fairLock(name).acquire({ waitMs: Infinity });
  await queued(name, 1);
  const [waiter = ""] = await queueOf(name);
  const leftMs = (await deadlineOf(name, waiter)) - (await serverNowMs());
  expect(leftMs).toBeLessThanOrEqual(3_700);
  // Keep the lock held for longer than the waiter's deadline.
  await scene.redis.pexpire(name, 5_000);
  await scene.redis.zadd(fairTimeoutKey(name), 1, waiter);
  expect(await node.locks.fairLock(name).tryAcquire()).toBeNull();
  expect(await queueOf(name), "it was passed over").toEqual([]);
  const lease = await waiting;
  expect(lease.owner).toBe(waiter);
  expect(await lease.release()).toBe("released");
  expect(await first.unlock()).toBe(true);
});

test("each waiter is notified on its own channel, and no other waiter wakes", async () => {
  const [name, node, other] = [scene.name(), scene.node(), scene.node()];
  const first = await hold(name);
  const ours = node.locks.fairLock(name).acquire({ waitMs: 15_000 });
  await queued(name, 1);
  const later = other.locks.fairLock(name).acquire({ waitMs: 15_000 });
  await queued(name, 2);
  for (const waiter of await queueOf(name)) await scene.listening(`${lockChannel(name)}:${waiter}`);
  const asked = other.sent.length;
  await first.unlock();
  const lease = await ours;
  expect(other.sent.length).toBe(asked);
  const { holders, waiters, waiterCount } = await node.locks.fairLock(name).inspect();
  expect({ holders: holders.map(({ owner }) => owner), waiterCount }).toEqual({
    holders: [lease.owner],
    waiterCount: 1,
  });
  await lease.release();
  const next = await later;
  expect(next.owner).toBe(waiters[0]?.owner);
  await next.release();
});

test("a fair lock and an RLock of the same name exclude each other, as in Java", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
  expect(await node.locks.fairLock(name).tryAcquire()).toBeNull();
  await theirs?.unlock();
  const ours = await node.locks.fairLock(name).acquire();
  expect(await java.acquire({ type: "lock", name }, { waitMs: 0 })).toBeUndefined();
  expect(await ours.release()).toBe("released");
});
