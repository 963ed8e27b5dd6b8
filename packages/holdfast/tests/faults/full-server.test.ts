/**
 * A server that has reached maxmemory. Once, renewals of semaphores and read-write locks were refused there, and
 * holders lost their leases.
 */

import { redisson } from "@holdfast/interop/redisson";
import { phpLua, timestampLock } from "@holdfast/interop/timestamp";
import { once, workerSlot } from "@holdfast/recipes";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { LONG_MS } from "../../src/testing/delays.js";
import { ioredis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

interface Held {
  extend(leaseMs: number): Promise<unknown>;
  release(): Promise<unknown>;
}

const KINDS: Readonly<Record<string, (holdfast: Holdfast, name: string) => Promise<Held>>> = {
  "a mutex": (holdfast, name) => holdfast.mutex(name).acquire(),
  "a reentrant mutex": (holdfast, name) => holdfast.reentrantMutex(name).acquire(),
  "a semaphore": (holdfast, name) => holdfast.semaphore(name, { permits: 2 }).acquire(),
  "a reader": (holdfast, name) => holdfast.readWriteLock(name).read.acquire(),
  "a writer": (holdfast, name) => holdfast.readWriteLock(name).write.acquire(),
  "an election": (holdfast, name) => holdfast.election(name).campaign("value"),
  "a multi-lock": (holdfast, name) => holdfast.multiLock([`${name}:a`, `${name}:b`]).acquire(),
  "a Redisson lock": (holdfast, name) => redisson(holdfast).lock(name).acquire(),
  "a Redisson fenced lock": (holdfast, name) => redisson(holdfast).fencedLock(name).acquire(),
  "a Redisson fair lock": (holdfast, name) => redisson(holdfast).fairLock(name).acquire(),
  "a Redisson reader": (holdfast, name) => redisson(holdfast).readWriteLock(name).read.acquire(),
  "a Redisson writer": (holdfast, name) => redisson(holdfast).readWriteLock(name).write.acquire(),
  "a timestamp lock": (holdfast, name) => timestampLock(holdfast, name, phpLua).acquire(),
};

beforeEach(async () => {
  await scene.server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
});
afterEach(async () => {
  await scene.server.command("CONFIG", "SET", "maxmemory", "0");
});

/** From now on, the server refuses every command that may need memory. */
async function fill(): Promise<void> {
  await scene.server.command("CONFIG", "SET", "maxmemory", "1");
}

describe("on a server without free memory", () => {
  test.each(Object.entries(KINDS))(
    "%s can be extended, even to less than it has left, and released",
    async (kind, acquire) => {
      const holdfast = await scene.client(ioredis);
      const lease = await acquire(holdfast, scene.name);
      await fill();
      // Redisson's readers have leases of 30 s at most.
      await lease.extend(kind === "a Redisson reader" ? 30_000 : 90_000);
      await lease.extend(20_000);
      await lease.release();
      await scene.server.command("CONFIG", "SET", "maxmemory", "0");
      await (await acquire(holdfast, scene.name)).release();
    },
  );

  test("a read-write lock can be downgraded", async () => {
    const holdfast = await scene.client(ioredis);
    const lease = await holdfast.readWriteLock(scene.name).write.acquire();
    await fill();
    await lease.downgrade();
    await lease.release();
  });

  test("a semaphore waiter is granted by a release, and can extend and release its permit", async () => {
    const [first, second] = [await scene.client(ioredis), await scene.client(ioredis)];
    const lease = await first.semaphore(scene.name, { permits: 1 }).acquire();
    const next = second.semaphore(scene.name, { permits: 1 }).acquire({ waitMs: LONG_MS });
    await expect.poll(async () => (await first.semaphore(scene.name, { permits: 1 }).inspect()).waiters.length).toBe(1);
    await fill();
    await lease.release();
    const granted = await next;
    await granted.extend(60_000);
    await granted.release();
  });

  test("recipes can extend their lease and record their result", async () => {
    const holdfast = await scene.client(ioredis);
    const slot = await workerSlot(holdfast, `${scene.name}:slot`, { count: 2 });
    const done = once(holdfast, `${scene.name}:once`, async (lease) => {
      await fill();
      await lease.extend(90_000);
      return "result";
    });
    expect((await done).value).toBe("result");
    await slot.release();
  });

  test("a paused lock can be released", async () => {
    const holdfast = await scene.client(ioredis);
    const lease = await holdfast.mutex(scene.name).acquire();
    await holdfast.pause(scene.name, { by: "a test", label: "full" });
    await fill();
    await lease.release();
    expect((await holdfast.mutex(scene.name).inspect()).holders).toEqual([]);
  });

  test("a new lock is refused, and the error says that nothing ran", async () => {
    const holdfast = await scene.client(ioredis);
    await holdfast.mutex(`${scene.name}:warm`).tryAcquire();
    await fill();
    const error: unknown = await holdfast
      .mutex(scene.name)
      .acquire({ waitMs: 0 })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "StoreError", mayHaveRun: false });
    expect(String((error as Error).cause)).toContain("OOM");
  });
});
