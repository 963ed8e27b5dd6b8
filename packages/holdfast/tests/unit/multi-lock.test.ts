/** The requests of a multi-lock, and how it handles lost replies. */
import { Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import { createHoldfast, type Holdfast, StoreError } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";
import { WatchedStore } from "./watched-store.js";

let store: WatchedStore;
let holdfast: Holdfast;
let rival: Holdfast;

beforeEach(() => {
  const keyspace = new Keyspace();
  store = new WatchedStore(keyspace);
  holdfast = createHoldfast({ store });
  rival = createHoldfast({ store: new WatchedStore(keyspace) });
});
afterEach(async () => {
  await Promise.all([holdfast.close(), rival.close()]);
});

const isJoint = ({ name }: Script): boolean => name === "multi-lock/acquire";
const free = async (...names: string[]): Promise<void> => {
  await until(async () => {
    const states = await Promise.all(names.map((name) => rival.mutex(name).inspect()));
    return states.every(({ holders, waiterCount }) => holders.length === 0 && waiterCount === 0);
  }, "all to be free");
};

describe("round trips", () => {
  test("free mutexes are acquired in one request and released in one request each", async () => {
    const lease = await holdfast.multiLock(["a", "b", "c"]).acquire();
    expect(store.taken()).toEqual(["multi-lock/acquire"]);
    await lease.release();
    expect(store.taken()).toEqual(["mutex/release", "mutex/release", "mutex/release"]);
  });

  test("tryAcquire sends one acquire request, whether or not it succeeds", async () => {
    const blocker = await rival.mutex("b").acquire();
    expect(await holdfast.multiLock(["a", "b"]).tryAcquire()).toBeNull();
    expect(store.taken()).toEqual(["multi-lock/acquire"]);
    await blocker.release();
    await (await holdfast.multiLock(["a", "b"]).tryAcquire())?.release();
    expect(store.taken()).toEqual(["multi-lock/acquire", "mutex/release", "mutex/release"]);
  });

  test("if one mutex is held, the mutexes are acquired one by one in key order", async () => {
    const blocker = await rival.mutex("b").acquire();
    const waiting = holdfast.multiLock(["c", "b", "a"]).acquire();
    await until(async () => (await rival.mutex("b").inspect()).waiterCount === 1, "the wait for b");
    expect(await rival.mutex("a").tryAcquire()).toBeNull();
    const c = await rival.mutex("c").tryAcquire();
    expect(c).not.toBeNull();
    await c?.release();
    await blocker.release();
    await (await waiting).release();
  });

  test("a single mutex, or several kinds of locks, are acquired without the joint script", async () => {
    await (await holdfast.multiLock(["a"]).acquire()).release();
    expect(store.taken()).toEqual(["mutex/acquire", "mutex/release"]);
    await (await holdfast.multiLock(["b", holdfast.reentrantMutex("a")]).acquire()).release();
    expect(store.taken()).toEqual(["mutex/acquire", "mutex/acquire", "mutex/release", "mutex/release"]);
  });
});

describe("a server or proxy that does not run the script", () => {
  test("receives it once, then the mutexes are acquired one by one", async () => {
    store.fateOf = (script) => (isJoint(script) ? "refused for good" : "answered");
    const lease = await holdfast.multiLock(["b", "a"]).acquire();
    expect(lease.leases.map(({ name }) => name)).toEqual(["b", "a"]);
    expect(store.taken()).toEqual(["multi-lock/acquire", "mutex/acquire", "mutex/acquire"]);
    expect(await holdfast.multiLock(["c", "a"]).tryAcquire()).toBeNull();
    expect(store.taken()).toEqual(["mutex/acquire"]);
    await lease.release();
    await free("a", "b", "c");
  });
});

describe("a lost reply", () => {
  test("to the last request is an error, and every granted mutex is released", async () => {
    store.fateOf = (script) => (isJoint(script) ? "reply lost" : "answered");
    await expect(holdfast.multiLock(["a", "b", "c"]).acquire({ waitMs: 0 })).rejects.toThrow(StoreError);
    await free("a", "b", "c");
  });

  test("before the deadline leads to acquires one by one, which succeed", async () => {
    store.fateOf = (script) => (isJoint(script) ? "reply lost" : "answered");
    const lease = await holdfast.multiLock(["a", "b"]).acquire();
    for (const one of lease.leases) {
      expect((await rival.mutex(one.name).inspect()).holders[0]).toMatchObject({ owner: one.owner, token: one.token });
    }
    await lease.release();
    await free("a", "b");
  });

  test("to one release is an error, and the other mutexes are still released", async () => {
    const lease = await holdfast.multiLock(["a", "b"]).acquire();
    let releases = 0;
    store.fateOf = ({ name }) => {
      if (name !== "mutex/release") return "answered";
      releases += 1;
      return releases === 1 ? "refused for good" : "answered";
    };
    await expect(lease.release()).rejects.toThrow(StoreError);
    await free("a", "b");
  });
});

test("tryAcquire of several kinds that fails at the second lock gives the first back", async () => {
  const lock = holdfast.multiLock([holdfast.mutex("a"), holdfast.semaphore("b", { permits: 1 })]);
  store.fateOf = ({ name }) => (name === "permits/acquire" ? "refused for good" : "answered");
  await expect(lock.tryAcquire()).rejects.toThrow(StoreError);
  expect(store.taken()).toContain("mutex/acquire");
  await free("a");
});

test("the same owners get the same reply again, and an extended lease is not shortened", async () => {
  const { multiLockAcquire } = await import("../../src/generated/scripts.js");
  const suffixes = ["", ":fence", ":queue", ":handed", ":pause"];
  const keys = ["a", "b"].flatMap((name) => suffixes.map((suffix) => `{${name}}${suffix}`));
  const ask = (owners: string, leaseMs: number) => store.run(multiLockAcquire, keys, [leaseMs, owners]);
  const first = await ask("A/1/1000/1 A/2/1000/1", 1_000);
  expect(await ask("A/1/1000/1 A/2/1000/1", 60_000)).toEqual(first);
  expect(await ask("A/1/1000/1 A/2/1000/1", 1_000)).toEqual(first);
  const [code, member, restMs] = (await ask("A/1/1000/1 B/1/1000/1", 1_000)) as number[];
  expect([code, member]).toEqual([0, 2]);
  expect(restMs).toBeGreaterThan(30_000);
});
