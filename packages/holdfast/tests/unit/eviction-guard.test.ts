/** How an acquire behaves if the server evicts keys, hides its policy or does not reply in time. */
import { expect, test } from "vitest";
import { EvictionError, StoreError } from "../../src/core/errors.js";
import { evictionQuestion, Guard, type MemoryPolicy } from "../../src/core/guard.js";
import { ManualRuntime } from "./manual-runtime.js";
import { Answer, lost, NOW_US, never, ScriptedLock, watch } from "./scripted-lock.js";

const EVICTS: MemoryPolicy = { policy: "volatile-lru", maxmemoryBytes: 1_000_000 };
const SAFE: MemoryPolicy = { policy: "noeviction", maxmemoryBytes: 1_000_000 };

/** A lock on a server whose eviction policy the test controls. */
class World extends ScriptedLock {
  asked = 0;
  policy: () => Promise<MemoryPolicy | undefined>;

  constructor(policy: () => Promise<MemoryPolicy | undefined>) {
    super({
      readPolicy: () => {
        this.asked += 1;
        return this.policy();
      },
    });
    this.policy = policy;
  }
}

test.each([
  ["noeviction", 1_000_000, true],
  ["noeviction", 0, true],
  ["volatile-lru", 0, true],
  ["allkeys-lru", 0, true],
  ["volatile-lru", 1, false],
  ["volatile-ttl", 1_000_000, false],
  ["allkeys-random", 1_000_000, false],
  ["a-policy-of-the-future", 1_000_000, false],
])("a lock on a server with %s and maxmemory %i is granted: %s", async (policy, maxmemoryBytes, isGranted) => {
  const world = new World(async () => ({ policy, maxmemoryBytes }));
  const acquiring = watch(world.lock.acquire());
  await world.runtime.advance(0);
  expect(acquiring.state).toBe(isGranted ? "fulfilled" : "rejected");
  if (!isGranted) expect(acquiring.error).toMatchObject({ code: "ERR_LOCK_EVICTION", policy, maxmemoryBytes });
});

test("the policy request is sent together with the first acquire, and never again after a good reply", async () => {
  const world = new World(async () => SAFE);
  const acquiring = world.lock.acquire();
  expect([world.asked, world.sentOf("acquire").length]).toEqual([1, 1]);
  await (await acquiring).release();
  for (let i = 0; i < 10; i += 1) await (await world.lock.acquire()).release();
  expect(world.asked).toBe(1);
});

test("concurrent first acquires send one policy request", async () => {
  const world = new World(async () => SAFE);
  await Promise.all(Array.from({ length: 50 }, () => world.lock.acquire()));
  expect(world.asked).toBe(1);
});

test.each(["granted", "waiting"] as const)(
  "an acquire that was %s before the policy arrives leaves before it rejects, and nothing remains",
  async (outcome) => {
    const world = new World(async () => EVICTS);
    world.answers.acquire = async () =>
      outcome === "granted" ? { outcome, token: 7 } : { outcome, restMs: 30_000, nowUs: NOW_US };
    const answer = new Answer<void>();
    world.answers.leave = () => answer.promise;
    const acquiring = watch(world.lock.acquire());
    await world.runtime.advance(0);
    expect(acquiring.state).toBe("pending");
    expect(world.sentOf("leave")).toHaveLength(1);
    answer.resolve();
    await world.runtime.advance(0);
    expect(acquiring.error).toBeInstanceOf(EvictionError);
    await world.runtime.advance(120_000);
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(world.runtime.running()).toBe(0);
  },
);

test("acquires send only the policy request while the server evicts keys, and then work again", async () => {
  const world = new World(async () => EVICTS);
  await expect(world.lock.acquire()).rejects.toThrow(EvictionError);
  for (const verb of ["acquire", "tryAcquire"] as const) {
    await expect(world.lock[verb]()).rejects.toThrow(EvictionError);
  }
  expect([world.asked, world.sentOf("acquire").length]).toEqual([3, 1]);
  world.policy = async () => SAFE;
  expect(await world.lock.tryAcquire()).not.toBeNull();
  await world.lock.acquire();
  expect(world.asked).toBe(4);
});

test("a failed policy request changes nothing, and the next acquire repeats it", async () => {
  const world = new World(() => Promise.reject(lost()));
  await world.lock.acquire();
  world.policy = async () => EVICTS;
  await expect(world.lock.acquire()).rejects.toThrow(EvictionError);
  world.policy = () => Promise.reject(new StoreError("x", { mayHaveRun: false, transient: false, cause: "gone" }));
  await expect(world.lock.acquire(), "known to evict, and it cannot be asked").rejects.toThrow(StoreError);
});

test("an unanswered policy request delays an acquire by at most its own timeout", async () => {
  const world = new World(() => never());
  const acquiring = watch(world.lock.acquire({ waitMs: 300 }));
  await world.runtime.advance(299);
  expect(acquiring.state).toBe("pending");
  await world.runtime.advance(1);
  expect(acquiring.state).toBe("fulfilled");
});

test("an abort during the policy request ends the acquire and releases the grant", async () => {
  const world = new World(() => never());
  const controller = new AbortController();
  const acquiring = watch(world.lock.acquire({ signal: controller.signal }));
  await world.runtime.advance(10);
  controller.abort(new Error("enough"));
  await world.runtime.advance(0);
  expect(acquiring).toMatchObject({ state: "rejected", error: new Error("enough") });
  expect(world.sentOf("leave").length).toBeGreaterThan(0);
});

test("after a reconnect the next acquire repeats the policy request alongside its own", async () => {
  const world = new World(async () => SAFE);
  const lease = await world.lock.acquire();
  world.policy = async () => EVICTS;
  world.store.reconnect("inbox");
  await world.lock.acquire();
  expect(world.asked).toBe(1);
  world.store.reconnect("commands");
  await expect(world.lock.acquire()).rejects.toThrow(EvictionError);
  expect(world.sentOf("acquire")).toHaveLength(3);
  // A lease already held stays held because it is unknown whether its key was evicted.
  lease.assertHeld();
});

test("a server that hides its policy causes one warning, and locks are granted", async () => {
  let told = 0;
  let asked = 0;
  const question = evictionQuestion({
    read: async () => {
      asked += 1;
      return undefined;
    },
    onHidden: () => {
      told += 1;
    },
  });
  const guard = new Guard([question], new ManualRuntime());
  expect(await guard.pass("l", async () => 7, 100)).toBe(7);
  expect(guard.isOpen).toBe(true);
  guard.serverMayHaveChanged();
  expect(await guard.pass("l", async () => 8, 100)).toBe(8);
  expect([asked, told]).toEqual([2, 1]);
});

test("the error message names the policy, the limit, the risk and the fix", () => {
  expect(new EvictionError("order:42", EVICTS).message).toBe(
    '"order:42" was refused: the server evicts keys at its memory limit of 1000000 bytes ' +
      "(maxmemory-policy volatile-lru), so it may grant a lock that is still held. " +
      "Run CONFIG SET maxmemory-policy noeviction, or accept the risk with createHoldfast({ allowEviction: true }).",
  );
});
