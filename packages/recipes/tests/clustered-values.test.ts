/** Fenced writes, counters, versioned and cached values in a cluster. All keys of a value share one slot. */
import { randomUUID } from "node:crypto";
import { createHoldfast } from "holdfast";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../tests/support/redis-cluster.js";
import { clusterSlot } from "../../holdfast/src/stores/cluster-slot.js";
import type { RedisClient } from "../../holdfast/src/stores/detect.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { cache, counter, fencedSet, StaleTokenError, versioned } from "../src/index.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
const eventually = { timeout: 60_000, interval: 10 };

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.stop());

/** Each entry returns a connected client and a function that closes it. */
const libraries: Readonly<Record<string, () => Promise<{ redis: RedisClient; close: () => unknown }>>> = {
  async ioredis() {
    const redis = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
    redis.on("error", () => {});
    return { redis, close: () => redis.disconnect() };
  },
  async "node-redis"() {
    const redis = createCluster({ rootNodes: cluster.ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) });
    redis.on("error", () => {});
    await redis.connect();
    return { redis, close: () => redis.destroy() };
  },
};

describe.each(Object.keys(libraries))("with %s", (library) => {
  test("a fenced value and a counter survive a failover of their slot", async () => {
    const { redis, close } = (await libraries[library]?.()) ?? expect.fail("no such library");
    const holdfast = createHoldfast({ redis: redis as object });
    const key = randomUUID();
    for (const each of [key, `a{${key}}b`]) {
      await fencedSet(redis, { key: each, value: "first", lease: { name: key, token: 5 } });
      await fencedSet(holdfast, { key: each, value: "second", lease: { name: key, token: 6 } });
    }
    const stock = counter(holdfast, key);
    await stock.put(10, { requestId: "delivery" });
    expect(await stock.take(3, { requestId: "a" })).toBe(7);

    await cluster.failover(clusterSlot(key));
    expect(await stock.take(3, { requestId: "a" })).toBe(7);
    for (const each of [key, `a{${key}}b`]) {
      await expect(fencedSet(redis, { key: each, value: "late", lease: { name: key, token: 5 } })).rejects.toThrow(
        StaleTokenError,
      );
      await fencedSet(redis, { key: each, value: "third", lease: { name: key, token: 6 } });
    }
    expect(await stock.read()).toBe(7);
    await holdfast.close();
    await close();
  });

  test("a loaded value reaches waiters, and an invalidated one is loaded again, in any slot", async () => {
    const pair = await Promise.all(
      [1, 2].map(async () => (await libraries[library]?.()) ?? expect.fail("no such library")),
    );
    const holdfasts = pair.map(({ redis }) => createHoldfast({ redis: redis as object, commandTimeoutMs: 30_000 }));
    const [here, there] = holdfasts.map((one) => cache<string>(one, "user", { leaseMs: 600_000 }));
    if (here === undefined || there === undefined) return expect.fail("but two have it");
    for (const key of Array.from({ length: 6 }, () => randomUUID())) {
      const load = vi.fn(() => "second");
      const [begun, ended] = [deferred<void>(), deferred<string>()];
      const first = here.get(key, () => {
        begun.resolve();
        return ended.promise;
      });
      await begun.promise;
      const waiting = there.get(key, load, { waitMs: Infinity });
      // The subscription exists on one server. The others forward the message.
      const channel = `hf:cache:{user/${key}}:filled`;
      await vi.waitFor(async () => {
        const counts = await Promise.all(cluster.nodes.map((node) => node.command("PUBSUB", "NUMSUB", channel)));
        expect(counts.flat().some((count) => Number(count) > 0)).toBe(true);
      }, eventually);
      ended.resolve("first");
      expect(await Promise.all([first, waiting])).toEqual(["first", "first"]);
      expect(load).not.toHaveBeenCalled();
      await there.invalidate(key);
      expect(await here.get(key, load)).toBe("second");
    }
    await Promise.all(holdfasts.map((one) => one.close()));
    for (const { close } of pair) await close();
  });
});

describe.each(Object.keys(libraries))("with %s", (library) => {
  test("a versioned value keeps its version and its watchers after a failover of its slot", async () => {
    const { redis, close } = (await libraries[library]?.()) ?? expect.fail("no such library");
    const holdfast = createHoldfast({ redis: redis as object, commandTimeoutMs: 30_000 });
    const key = randomUUID();
    const total = versioned<number>(holdfast, key);
    const counted = (old = 0): number => old + 1;
    // Avoids the mutex, which is not granted for a while after a failover.
    const options = { attemptsMax: 1_000 };
    const seen: (number | undefined)[] = [];
    const watcher = total.watch();
    const watching = (async () => {
      for await (const { value } of watcher) seen.push(value);
    })();
    await Promise.all(Array.from({ length: 10 }, () => total.update(counted, options)));
    const { version } = await total.get();
    await vi.waitFor(() => expect(seen.at(-1)).toBe(10), { timeout: 60_000, interval: 20 });

    await cluster.failover(clusterSlot(key));
    expect(await total.get()).toEqual({ value: 10, version });
    expect(await total.compareAndSet(0, 0)).toEqual({ ok: false, value: 10, version });
    expect((await total.update(counted, options)).version).toBeGreaterThan(version);
    await vi.waitFor(() => expect(seen.at(-1)).toBe(11), { timeout: 60_000, interval: 20 });
    expect(seen.slice(1)).toEqual([...new Set(seen.slice(1))].toSorted((a, b) => Number(a) - Number(b)));
    await watcher.return();
    await watching;
    await holdfast.close();
    await close();
  });
});

test("with a client-side key prefix, a fenced write without a hash tag is refused and writes nothing", async () => {
  const redis = new Cluster(
    cluster.ports.map((port) => ({ host: "127.0.0.1", port })),
    { keyPrefix: "app:" },
  );
  redis.on("error", () => {});
  const key = randomUUID();
  const lease = { name: key, token: 5 };
  await expect(fencedSet(redis, { key, value: "x", lease })).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  expect(await redis.get(key)).toBeNull();
  await fencedSet(redis, { key: `{${key}}`, value: "x", lease });
  expect(await redis.get(`{${key}}`)).toBe("x");
  redis.disconnect();
});
