/** Redisson's key and channel names, and names whose keys would fall into different cluster slots. */
import { embedded } from "@holdfast/embedded";
import { createHoldfast, UnsupportedError } from "holdfast";
import { describe, expect, test } from "vitest";
import { clusterSlot } from "../../../holdfast/tests/unit/cluster-slot.js";
import { redisson } from "../../src/redisson/index.js";
import * as names from "../../src/redisson/names.js";

describe.each([
  ["order", "{order}", "{order}"],
  ["order:{42}", "order:{42}", "{order:{42}}"],
  ["{t}x", "{t}x", "{{t}x}"],
  ["svc:order", "{svc:order}", "{svc:order}"],
])("name %s", (name, tagged, always) => {
  test("keys and channels match Redisson's", () => {
    const owner = "0c4f6c1e-5f3f-4d0b-9d59-0f2b8b6f5a01:7";
    expect({
      lock: names.lockChannel(name),
      readWrite: names.readWriteChannel(name),
      semaphore: names.semaphoreChannel(name),
      latch: names.countDownLatchChannel(name),
      unlock: names.unlockLatchKey(name, "00ff"),
      queue: names.fairQueueKey(name),
      timeout: names.fairTimeoutKey(name),
      token: names.fencedTokenKey(name),
      hold: names.readHoldKey(name, owner, 2),
      leases: names.permitLeasesKey(name),
    }).toEqual({
      lock: `redisson_lock__channel:${tagged}`,
      readWrite: `redisson_rwlock:${tagged}`,
      semaphore: `redisson_sc:${tagged}`,
      latch: `redisson_countdownlatch__channel__${always}`,
      unlock: `redisson_unlock_latch:${tagged}:00ff`,
      queue: `redisson_lock_queue:${tagged}`,
      timeout: `redisson_lock_timeout:${tagged}`,
      token: `redisson_lock_token:${tagged}`,
      hold: `${tagged}:${owner}:rwlock_timeout:2`,
      leases: `${tagged}:timeout`,
    });
  });
});

const onOne = { nameMapper: undefined, isCluster: false };
const onCluster = { nameMapper: undefined, isCluster: true };
const derived = [names.lockChannel, names.suffixBase, (name: string) => names.unlockLatchKey(name, "")];

test.each(["a{", "a{}b", "a}b", "{}{b}", "}", "a{b"])("a cluster refuses the name %s", (name) => {
  expect(names.rawName(name, onOne, ...derived)).toBe(name);
  expect(() => names.rawName(name, onCluster, ...derived)).toThrow(RangeError);
  expect(() => names.rawName(name, onCluster, ...derived)).toThrow(
    /name must keep all of its keys in one cluster slot/,
  );
});

test.each(["order", "order:{42}", "{t}x", "{a}b}", "a{b}c{d}"])("all keys of the name %s are in one slot", (name) => {
  names.rawName(name, onCluster, ...derived);
  const slots = [name, ...derived.map((derive) => derive(name))].map((key) => clusterSlot(key));
  expect(new Set(slots).size).toBe(1);
});

test("on a cluster, a latch name cannot contain a closing brace: its channel adds braces", () => {
  expect(() => names.rawName("order:{42}", onCluster, names.countDownLatchChannel)).toThrow(RangeError);
  expect(names.rawName("order", onCluster, names.countDownLatchChannel)).toBe("order");
});

test("nameMapper returns the name used on the server, and its result is checked", () => {
  const nameMapper = (name: string): string => `svc:${name}`;
  expect(names.rawName("order", { nameMapper, isCluster: true }, ...derived)).toBe("svc:order");
  for (const bad of [() => "", () => undefined]) {
    const rules = { nameMapper: bad as unknown as names.NameMapper, isCluster: false };
    expect(() => names.rawName("order", rules)).toThrow(
      /nameMapper must return a non-empty string; got .* for "order"/,
    );
  }
});

describe("redisson()", () => {
  const holdfast = createHoldfast({ store: embedded() });

  test.each([
    [{ prefix: "a" }, /there is no option "prefix"; the options are nameMapper, publish, watchdogMs, fairWaitMs/],
    [{ publish: "loud" }, /publish must be "plain", "sharded" or "both"; got "loud"/],
    [{ publish: "sharded" }, /publish must be "plain" or "both" without a cluster/],
    [{ nameMapper: "svc:" }, /nameMapper must be a function that maps a name to a name; got "svc:"/],
    [{ watchdogMs: 5 }, /watchdogMs must be a whole number from 100 to 31536000000; got 5/],
    [{ fairWaitMs: "1" }, /fairWaitMs must be a whole number/],
    [null, /options of redisson must be an object; got null/],
  ])("refuses %o", (options, reason) => {
    expect(() => redisson(holdfast, options as never)).toThrow(reason);
  });

  test("requires a Holdfast on one server or one cluster", () => {
    expect(() => redisson({} as never)).toThrow(TypeError);
    const quorum = createHoldfast({ redlock: [embedded(), embedded(), embedded()] });
    expect(() => redisson(quorum)).toThrow(UnsupportedError);
  });

  test.each([
    ["", RangeError],
    [1, TypeError],
    ["x".repeat(513), RangeError],
  ])("refuses the name %o", (name, kind) => {
    const locks = redisson(holdfast);
    for (const make of [locks.lock, locks.fencedLock, locks.spinLock, locks.fairLock, locks.readWriteLock]) {
      expect(() => make(name as string)).toThrow(kind);
    }
  });

  test("a reader's lease is never longer than watchdogMs", async () => {
    const { read, write } = redisson(holdfast, { watchdogMs: 5_000 }).readWriteLock("a");
    await expect(read.acquire({ leaseMs: 5_001 })).rejects.toThrow(
      /leaseMs of a read lock must be a whole number from 100 to 5000; got 5001/,
    );
    await expect(read.tryAcquire({ leaseMs: 5_001 })).rejects.toThrow(RangeError);
    const lease = await read.acquire();
    expect(lease.validForMs()).toBeLessThanOrEqual(5_000);
    await expect(lease.extend(5_001)).rejects.toThrow(RangeError);
    await lease.release();
    await using written = await write.acquire({ leaseMs: 20_000 });
    expect(written.validForMs()).toBeGreaterThan(5_000);
  });
});
