/** A cache and a versioned value behind Sentinel while the master is replaced. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../tests/support/redis-sentinel.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { cache, versioned } from "../src/index.js";

const eventually = { timeout: 60_000, interval: 50 };
let topology: RedisSentinel;
let clients: Redis[];
let here: Holdfast;
let there: Holdfast;

beforeAll(async () => {
  topology = await startSentinel({ downAfterMs: 60_000 });
  clients = [1, 2].map(() => new Redis({ sentinels: [...topology.addresses], name: topology.name }));
  for (const client of clients) client.on("error", () => {});
  [here, there] = clients.map((redis) => createHoldfast({ redis, commandTimeoutMs: 30_000 })) as [Holdfast, Holdfast];
}, 120_000);

afterAll(async () => {
  await Promise.all([here?.close(), there?.close()]);
  for (const client of clients ?? []) client.disconnect();
  await topology?.stop();
});

test("after a failover the cache still serves callers, and versions never go back", { timeout: 240_000 }, async () => {
  const key = randomUUID();
  const users = { here: cache<string>(here, "user"), there: cache<string>(there, "user") };
  const total = { here: versioned<number>(here, key), there: versioned<number>(there, key) };
  const { version: before } = await total.here.update(() => 1);
  const loading = deferred<string>();
  const begun = deferred<void>();
  const first = users.here.get(key, () => {
    begun.resolve();
    return loading.promise;
  });
  await begun.promise;
  const waiting = users.there.get(key, () => "second", { waitMs: Infinity });
  const old = await topology.master();
  await topology.failover();
  await vi.waitFor(async () => expect((await topology.master()).id).not.toBe(old.id), eventually);
  loading.resolve("first");
  expect(await first).toBe("first");
  // The new master may or may not have received the record of the load.
  expect(["first", "second"]).toContain(await waiting);
  expect(await users.here.get(`${key}:cold`, () => "cold")).toBe("cold");
  await vi.waitFor(async () => {
    const { version } = await total.there.update((value) => (value ?? 0) + 1);
    expect(version).toBeGreaterThan(before);
  }, eventually);
  const { value, version } = await total.here.get();
  expect(await total.here.compareAndSet(before, 0)).toEqual({ ok: false, value, version });
});
