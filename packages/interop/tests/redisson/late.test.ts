/** Requests that arrive late or twice, or whose replies are lost, leave nothing behind and shorten no lease. */

import { ClosedError, LockError, StoreError } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import type { RedissonReadLease } from "../../src/redisson/index.js";
import { fairQueueKey, readHoldKey } from "../../src/redisson/names.js";
import { type Service, straggler, useScene } from "./scene.js";

vi.setConfig({ testTimeout: 90_000 });

const scene = useScene();
const LONG_MS = 50_000;
/** Short enough that a hold shortened to it is detectable. */
const SHORT_MS = 5_000;
const eventually = 10_000;

const gone = (...keys: string[]): Promise<void> =>
  vi.waitFor(async () => expect(await scene.redis.exists(...keys)).toBe(0), eventually);

describe("a fair-queue request that arrives after its caller has left", () => {
  test.each([
    ["if the requested lease would be long over", 100],
    ["if the requested lease would not be over yet", LONG_MS],
  ])("leaves no queue entry behind: %s", async (_, leaseMs) => {
    const [name, node] = [scene.name(), scene.node()];
    await scene.redis.hset(name, "java:1", 1);
    const { arrive } = straggler(node, "fair/acquire");
    await expect(node.locks.fairLock(name).acquire({ waitMs: 50, leaseMs })).rejects.toBeInstanceOf(LockError);
    // The client keeps sending leave requests for longer than the lease because a queue entry does not end with it.
    await vi.waitFor(
      () => expect(node.sent.filter((sent) => sent === "fair/leave").length).toBeGreaterThan(3),
      eventually,
    );
    await arrive();
    await gone(fairQueueKey(name));
  });
});

describe("a read hold is not shortened", () => {
  const read = (node: Service, name: string): Promise<RedissonReadLease> =>
    node.locks.readWriteLock(name).read.acquire({ leaseMs: SHORT_MS, renew: false });

  async function expectLong(name: string, lease: RedissonReadLease): Promise<void> {
    for (const key of [name, readHoldKey(name, lease.owner, 1)]) {
      expect(await scene.redis.pttl(key), key).toBeGreaterThan(LONG_MS / 2);
    }
    expect(await lease.release()).toBe("released");
  }

  test("by its acquire request arriving after an extension", async () => {
    const [name, node] = [scene.name(), scene.node({}, { watchdogMs: LONG_MS })];
    const { arrive } = straggler(node, "read-write/read-acquire");
    const lease = await read(node, name);
    await lease.extend(LONG_MS);
    await arrive();
    await expectLong(name, lease);
  });

  test("by a downgrade request arriving after an extension", async () => {
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

describe("a writer whose downgrade gets no reply", () => {
  test.each([
    ["if the downgrade was applied", (node: Service) => (node.loses = ({ name }) => name.endsWith("downgrade"))],
    [
      "if the downgrade never arrived",
      (node: Service) =>
        (node.straggles = ({ name }) => (name.endsWith("downgrade") ? new Promise<void>(() => {}) : undefined)),
    ],
  ])("fails and leaves no lock behind: %s", async (_, cut) => {
    const [name, node] = [scene.name(), scene.node({ commandTimeoutMs: 200 })];
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: LONG_MS });
    const reader = writer.owner.replace(/:write$/, "");
    cut(node);
    await expect(writer.downgrade()).rejects.toBeInstanceOf(StoreError);
    expect(writer.validForMs()).toBe(0);
    await gone(name, readHoldKey(name, reader, 1));
  });

  test("retries the downgrade without sending renewals, and reports no loss", () =>
    withLeaseInTime(async (leaseMs) => {
      const [name, node] = [scene.name(), scene.node({ leaseMs, commandTimeoutMs: leaseMs })];
      const writer = await node.locks.readWriteLock(name).write.acquire();
      // Lose replies for longer than the interval between two renewals.
      const endAtMs = performance.now() + leaseMs / 2;
      node.loses = ({ name: script }) => script.endsWith("downgrade") && performance.now() < endAtMs;
      const reader = await writer.downgrade();
      expect(node.sent.filter((sent) => sent === "read-write/downgrade").length).toBeGreaterThan(2);
      expect(node.sent).not.toContain("extend");
      expect(await scene.redis.hgetall(name)).toEqual({ mode: "read", [reader.owner]: "1" });
      expect(await reader.release()).toBe("released");
    }, 1_500));

  test("counts its read lease from before the answered request was sent", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const writer = await node.locks.readWriteLock(name).write.acquire({ leaseMs: SHORT_MS, renew: false });
    node.before = ({ name: script }) =>
      script.endsWith("downgrade") ? new Promise((resolve) => setTimeout(resolve, 300)) : undefined;
    const reader = await writer.downgrade();
    expect(reader.validForMs()).toBeLessThanOrEqual(SHORT_MS - 300);
    expect(await reader.release()).toBe("released");
  });

  test("leaves nothing behind when its Holdfast closes during the downgrade", async () => {
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
