/** Requests of Redisson's locks that arrive late, twice, or whose answers are lost: nothing is left of them, and nothing is cut short. */
import { describe, expect, test, vi } from "vitest";
import { ClosedError, LockError, StoreError } from "../../src/index.js";
import type { RedissonReadLease } from "../../src/interop/redisson/index.js";
import { fairQueueKey, readHoldKey } from "../../src/interop/redisson/names.js";
import { withLeaseInTime } from "../../src/testing/delays.js";
import { type Service, straggler, useScene } from "./scene.js";

vi.setConfig({ testTimeout: 90_000 });

const scene = useScene();
const LONG_MS = 50_000;
/** What was shortened to a lease of `SHORT_MS` shows. */
const SHORT_MS = 5_000;
const eventually = 10_000;

const gone = (...keys: string[]): Promise<void> =>
  vi.waitFor(async () => expect(await scene.redis.exists(...keys)).toBe(0), eventually);

describe("a request for a place in the fair queue that arrives after its caller has left", () => {
  test.each([
    ["the lease that it asks for is long over", 100],
    ["that lease would not be over yet", LONG_MS],
  ])("leaves no place behind: %s", async (_, leaseMs) => {
    const [name, node] = [scene.name(), scene.node()];
    await scene.redis.hset(name, "java:1", 1);
    const { arrive } = straggler(node, "fair/acquire");
    await expect(node.locks.fairLock(name).acquire({ waitMs: 50, leaseMs })).rejects.toBeInstanceOf(LockError);
    // It leaves again and again, for longer than that lease: what stands in a queue has none.
    await vi.waitFor(
      () => expect(node.sent.filter((sent) => sent === "fair/leave").length).toBeGreaterThan(3),
      eventually,
    );
    await arrive();
    await gone(fairQueueKey(name));
  });
});

describe("a reading hold is not cut short", () => {
  const read = (node: Service, name: string): Promise<RedissonReadLease> =>
    node.locks.readWriteLock(name).read.acquire({ leaseMs: SHORT_MS, renew: false });

  async function expectLong(name: string, lease: RedissonReadLease): Promise<void> {
    for (const key of [name, readHoldKey(name, lease.owner, 1)]) {
      expect(await scene.redis.pttl(key), key).toBeGreaterThan(LONG_MS / 2);
    }
    expect(await lease.release()).toBe("released");
  }

  test("by its first request, where that arrives after an extension", async () => {
    const [name, node] = [scene.name(), scene.node({}, { watchdogMs: LONG_MS })];
    const { arrive } = straggler(node, "read-write/read-acquire");
    const lease = await read(node, name);
    await lease.extend(LONG_MS);
    await arrive();
    await expectLong(name, lease);
  });

  test("by the request to go on reading, where that arrives after an extension", async () => {
    const [name, node] = [scene.name(), scene.node({}, { watchdogMs: LONG_MS })];
    const { arrive } = straggler(node, "read-write/downgrade");
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: SHORT_MS, renew: false });
    const lease = await writer.downgrade();
    await lease.extend(LONG_MS);
    await arrive();
    await expectLong(name, lease);
  });

  test("by a shorter extension", async () => {
    const [name, node] = [scene.name(), scene.node({}, { watchdogMs: LONG_MS })];
    const lease = await read(node, name);
    await lease.extend(LONG_MS);
    await lease.extend(SHORT_MS);
    await expectLong(name, lease);
  });
});

describe("a writer that goes on reading, and hears nothing of it", () => {
  test.each([
    ["although it was done", (node: Service) => (node.loses = ({ name }) => name.endsWith("downgrade"))],
    [
      "because it never arrived",
      (node: Service) =>
        (node.straggles = ({ name }) => (name.endsWith("downgrade") ? new Promise<void>(() => {}) : undefined)),
    ],
  ])("has neither lock, and nothing is left: %s", async (_, cut) => {
    const [name, node] = [scene.name(), scene.node({ commandTimeoutMs: 200 })];
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: LONG_MS });
    const reader = writer.owner.replace(/:write$/, "");
    cut(node);
    await expect(writer.downgrade()).rejects.toBeInstanceOf(StoreError);
    expect(writer.validForMs()).toBe(0);
    await gone(name, readHoldKey(name, reader, 1));
  });

  test("is not told that it has lost the lock by a renewal, which would find no writer any more", () =>
    withLeaseInTime(async (leaseMs) => {
      const [name, node] = [scene.name(), scene.node({ leaseMs, commandTimeoutMs: leaseMs })];
      const writer = await node.locks.readWriteLock(name).write.acquire();
      // For longer than the time between two renewals.
      const endAtMs = performance.now() + leaseMs / 2;
      node.loses = ({ name: script }) => script.endsWith("downgrade") && performance.now() < endAtMs;
      const reader = await writer.downgrade();
      expect(node.sent.filter((sent) => sent === "read-write/downgrade").length).toBeGreaterThan(2);
      expect(node.sent).not.toContain("extend");
      expect(await scene.redis.hgetall(name)).toEqual({ mode: "read", [reader.owner]: "1" });
      expect(await reader.release()).toBe("released");
    }, 1_500));

  test("counts its new lease from before the request that was heard", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: SHORT_MS, renew: false });
    node.before = ({ name: script }) =>
      script.endsWith("downgrade") ? new Promise((resolve) => setTimeout(resolve, 300)) : undefined;
    const reader = await writer.downgrade();
    expect(reader.validForMs()).toBeLessThanOrEqual(SHORT_MS - 300);
    expect(await reader.release()).toBe("released");
  });

  test("and whose Holdfast is closed meanwhile, leaves nothing", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: LONG_MS });
    let closing: Promise<unknown> | undefined;
    node.loses = ({ name: script }) => {
      if (script.endsWith("downgrade")) closing ??= node.holdfast.close();
      return false;
    };
    const end = await writer.downgrade().catch((error: unknown) => error);
    expect(end).toBeInstanceOf(ClosedError);
    await closing;
    await gone(name, readHoldKey(name, writer.owner.replace(/:write$/, ""), 1));
  });
});
