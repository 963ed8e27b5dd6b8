/** Readers and writers of Node and Java share one lock, and no hold ends because another hold ends. */

import { createHoldfast, LeaseLostError, StoreError } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import { redisson } from "../../src/redisson/index.js";
import { readWriteChannel } from "../../src/redisson/names.js";
import { once, useScene } from "./scene.js";
import type { Held } from "./side.js";

// Cases that run late on a busy machine are repeated with a longer lease.
vi.setConfig({ testTimeout: 90_000 });

const scene = useScene();
const LONG_MS = 50_000;
const WOKEN_MS = 3_500;

/** A reader of either side. */
interface Reader {
  release(): Promise<unknown>;
}

describe.each(["first", "last"])("a Node reader that leaves %s", (order) => {
  test.each(["order", "order:{x}"])("does not end the Java reader's hold on %s, nor the reverse", async (base) => {
    const name = base.replace("order", scene.name());
    const holdBase = name.includes("{") ? name : `{${name}}`;
    const [node, java] = [scene.node({}, { watchdogMs: LONG_MS }), scene.java()];
    const { read, write } = node.locks.readWriteLock(name);
    const theirs = (await java.acquire({ type: "read", name }, { waitMs: 0, leaseMs: 40_000 })) as Held;
    const ours = await read.acquire({ leaseMs: LONG_MS });
    const readers: readonly Reader[] = [ours, { release: () => theirs.unlock() }];
    const [first, last] = order === "first" ? readers : readers.toReversed();
    expect(await scene.redis.hlen(name)).toBe(3);

    await first?.release();
    expect(await scene.redis.hlen(name)).toBe(2);
    expect(await scene.redis.hget(name, "mode")).toBe("read");
    // The lock must expire together with the remaining hold.
    const holds = await scene.redis.keys(`${holdBase}:*:rwlock_timeout:1`);
    expect(holds).toHaveLength(1);
    const leftMs = await scene.redis.pttl(holds[0] as string);
    expect(Math.abs((await scene.redis.pttl(name)) - leftMs)).toBeLessThan(1_000);
    expect(await write.tryAcquire()).toBeNull();
    expect(await java.acquire({ type: "write", name }, { waitMs: 0 })).toBeUndefined();

    await last?.release();
    expect(await scene.redis.exists(name)).toBe(0);
    await using lease = await write.acquire({ waitMs: WOKEN_MS });
    lease.assertHeld();
  });
});

test("a Java reader that enters and leaves twice does not end a Node reader's hold", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = (await java.acquire({ type: "read", name }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
  expect(await java.reenter(theirs, LONG_MS)).toBe(true);
  const ours = await node.locks.readWriteLock(name).read.acquire();
  for (let i = 0; i < 2; i += 1) await theirs.unlock();
  expect(await scene.redis.hgetall(name)).toEqual({ mode: "read", [ours.owner]: "1" });
  expect(await ours.release()).toBe("released");
});

test("a Java reader that entered twice keeps the lock when a Node reader leaves", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = (await java.acquire({ type: "read", name }, { waitMs: 0, leaseMs: 20_000 })) as Held;
  expect(await java.reenter(theirs, 45_000)).toBe(true);
  const ours = await node.locks.readWriteLock(name).read.acquire();
  expect(await ours.release()).toBe("released");
  expect(await scene.redis.pttl(name), "as long as the longest of its holds").toBeGreaterThan(40_000);
  await theirs.unlock();
  await theirs.unlock();
  expect(await scene.redis.exists(name)).toBe(0);
});

test("renewing readers on both sides keep the lock, and a crashed reader does not outlast them", () =>
  withLeaseInTime(async (watchdogMs) => {
    const name = scene.name();
    const settings = { watchdogMs };
    const [node, java, mortal] = [
      scene.node({ leaseMs: watchdogMs }, settings),
      scene.java(settings),
      scene.java(settings),
    ];
    const { read, write } = node.locks.readWriteLock(name);
    const ours = await read.acquire();
    const theirs = (await java.acquire({ type: "read", name }, { waitMs: 0 })) as Held;
    await mortal.acquire({ type: "read", name }, { waitMs: 0 });
    await mortal.die();
    expect(await write.acquire({ waitMs: 2 * watchdogMs + 200 }).catch(() => null)).toBeNull();
    expect(ours.signal.aborted).toBe(false);
    expect(await ours.release()).toBe("released");
    expect(await theirs.unlock()).toBe(true);
    await using lease = await write.acquire({ waitMs: 2 * watchdogMs + 10_000, leaseMs: 30_000 });
    lease.assertHeld();
  }, 1_500));

test("a renewal restores a read hold whose key is gone", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const lease = await node.locks.readWriteLock(name).read.acquire({ leaseMs: 20_000 });
  const hold = `{${name}}:${lease.owner}:rwlock_timeout:1`;
  await scene.redis.del(hold);
  await lease.extend(20_000);
  expect(await scene.redis.get(hold)).toBe("1");
  expect(await scene.redis.pttl(hold)).toBeGreaterThan(15_000);
  expect(await lease.release()).toBe("released");
});

test("a writer's release wakes all readers on both sides", async () => {
  const [name, java, ...nodes] = [scene.name(), scene.java(), scene.node(), scene.node()];
  const [{ locks }] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
  const writer = await locks.readWriteLock(name).write.acquire();
  const waits = [
    ...nodes.map((node) => node.locks.readWriteLock(name).read.acquire({ waitMs: WOKEN_MS })),
    java.acquire({ type: "read", name }, { waitMs: WOKEN_MS, leaseMs: LONG_MS }),
    java.acquire({ type: "read", name }, { waitMs: WOKEN_MS, leaseMs: LONG_MS }),
  ];
  await scene.listening(readWriteChannel(name), 3);
  await writer.release();
  expect((await Promise.all(waits)).every((lease) => lease !== undefined)).toBe(true);
  expect(await scene.redis.hlen(name)).toBe(5);
});

describe("a writer that downgrades to a reader", () => {
  test("admits readers on both sides immediately, and no writer in between", async () => {
    const [name, node, other, java] = [scene.name(), scene.node(), scene.node(), scene.java()];
    const { write } = node.locks.readWriteLock(name);
    const writer = await write.acquire();
    const waits = [
      other.locks.readWriteLock(name).read.acquire({ waitMs: WOKEN_MS }),
      java.acquire({ type: "read", name }, { waitMs: WOKEN_MS, leaseMs: LONG_MS }),
    ];
    const rival = java.acquire({ type: "write", name }, { waitMs: 700 });
    await scene.listening(readWriteChannel(name), 2);
    const reader = await writer.downgrade();
    expect(reader.owner).toBe(writer.owner.replace(/:write$/, ""));
    expect(reader.token).toBe(writer.token);
    expect((await Promise.all(waits)).every((lease) => lease !== undefined)).toBe(true);
    expect(await rival).toBeUndefined();
    expect(await scene.redis.hget(name, reader.owner)).toBe("1");
    expect(await scene.redis.exists(`{${name}}:${reader.owner}:rwlock_timeout:1`)).toBe(1);
    expect(await writer.release(), "it has ended as it should").toBe("released");
    expect(() => writer.assertHeld()).toThrow(LeaseLostError);
    expect(await reader.release()).toBe("released");
  });

  test("leaves the same state as a Java thread that downgrades, and is renewed as a reader", () =>
    withLeaseInTime(async (leaseMs) => {
      const [name, node, java] = [scene.name(), scene.node({ leaseMs }, { watchdogMs: leaseMs }), scene.java()];
      const writer = (await java.acquire({ type: "write", name }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
      const nested = (await java.readUnder(writer, LONG_MS)) as Held;
      await writer.unlock();
      const theirs = Object.values(await scene.redis.hgetall(name)).toSorted();
      await nested.unlock();
      const reader = await (await node.locks.readWriteLock(name).write.acquire()).downgrade();
      expect(Object.values(await scene.redis.hgetall(name)).toSorted()).toEqual(theirs);
      expect(await java.acquire({ type: "write", name }, { waitMs: 2 * leaseMs + 200 })).toBeUndefined();
      reader.assertHeld();
      expect(await reader.release()).toBe("released");
    }, 1_500));

  test("is counted once if the reply was lost", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const writer = await node.locks.readWriteLock(name).write.acquire();
    node.loses = once("read-write/downgrade");
    const reader = await writer.downgrade();
    expect(await scene.redis.hgetall(name)).toEqual({ mode: "read", [reader.owner]: "1" });
    expect(await reader.release()).toBe("released");
  });

  test("succeeds when enough replicas have the hold, and otherwise leaves nothing behind", async () => {
    const name = scene.name();
    const replica = await startRedis();
    const client = new Redis({ port: scene.port });
    const follow = (...to: string[]): Promise<unknown> => replica.command("REPLICAOF", ...to);
    try {
      await scene.redis.config("SET", "repl-diskless-sync-delay", "0");
      await follow("127.0.0.1", String(scene.port));
      await vi.waitFor(
        async () => expect(await replica.command("INFO", "replication")).toContain("master_link_status:up"),
        20_000,
      );
      const holdfast = createHoldfast({
        redis: client,
        replicas: { atLeast: 1, timeoutMs: 2_000 },
        commandTimeoutMs: 5_000,
      });
      const { write } = redisson(holdfast).readWriteLock(name);
      const reader = await (await write.acquire({ waitMs: 20_000 })).downgrade();
      expect(await replica.command("HGET", name, reader.owner)).toBe("1");
      expect(await reader.release()).toBe("released");

      const writer = await write.acquire({ waitMs: 20_000 });
      await follow("NO", "ONE");
      const failure = await writer.downgrade().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StoreError);
      expect(String(failure)).toContain("replicas acknowledged");
      expect(writer.validForMs()).toBe(0);
      await vi.waitFor(async () => expect(await scene.redis.exists(name)).toBe(0), 10_000);
      await holdfast.close();
    } finally {
      client.disconnect();
      await replica.stop();
    }
  });

  test("reports a lost lock", async () => {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const writer = await node.locks.readWriteLock(name).write.acquire();
    await java.forceUnlock({ type: "write", name });
    await expect(writer.downgrade()).rejects.toBeInstanceOf(LeaseLostError);
    expect(writer.signal.aborted).toBe(true);
    expect(await scene.redis.exists(name)).toBe(0);
  });
});

test("a Java thread that writes and reads keeps its write lock when it stops reading", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const writer = (await java.acquire({ type: "write", name }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
  const nested = (await java.readUnder(writer, LONG_MS)) as Held;
  const { read, write } = node.locks.readWriteLock(name);
  const { holders } = await write.inspect();
  expect(holders).toHaveLength(2);
  expect(holders.filter(({ owner }) => owner.endsWith(":write"))).toHaveLength(1);
  await nested.unlock();
  expect(await read.tryAcquire()).toBeNull();
  await writer.unlock();
  await vi.waitFor(async () => expect(await (await read.tryAcquire())?.release()).toBe("released"));
});

test("a force-release ends one reader only; Java's forceUnlock ends all of them", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const { read } = node.locks.readWriteLock(name);
  const theirs = (await java.acquire({ type: "read", name }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
  await java.reenter(theirs, LONG_MS);
  const ours = await read.acquire();
  const { holders } = await read.inspect();
  const owner = holders.map((holder) => holder.owner).find((one) => one !== ours.owner) as string;
  expect(await read.forceRelease({ owner })).toBe(true);
  expect(await read.forceRelease({ owner })).toBe(false);
  expect(await read.forceRelease({ owner: "mode" })).toBe(false);
  expect(await theirs.unlock()).toBe(false);
  expect(await scene.redis.hgetall(name)).toEqual({ mode: "read", [ours.owner]: "1" });
  expect(await java.forceUnlock({ type: "read", name })).toBe(true);
  await expect(ours.release()).rejects.toBeInstanceOf(LeaseLostError);
});

test("a force-release cannot end a reader via the write side, or a writer via the read side", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const { read, write } = node.locks.readWriteLock(name);
  await scene.redis.hset(name, { mode: "write", "j:1:write": 1, "j:1": 1 });
  await scene.redis.pexpire(name, 60_000);
  expect(await write.forceRelease({ owner: "j:1" })).toBe(false);
  expect(await read.forceRelease({ owner: "j:1:write" })).toBe(false);
  expect(await scene.redis.hgetall(name)).toEqual({ mode: "write", "j:1:write": "1", "j:1": "1" });
  expect(await read.tryAcquire()).toBeNull();
});
