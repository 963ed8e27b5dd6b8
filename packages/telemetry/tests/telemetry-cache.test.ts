/** The outcomes that cache calls report in events and metrics, on a real server. */
import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { type Cache, type CacheOptions, cache, type LoadLease } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { ofOpenTelemetry, ofPrometheus, type Read } from "./series.js";

// No test here depends on timing, so the timeouts are long enough for slow machines.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
const eventually = { timeout: 60_000, interval: 10 };
const commandTimeoutMs = 60_000;
const patient = { waitMs: Infinity };
const entry = "hf:cache:{user/42}";
const STARTED = "tracing:holdfast:cache:start";
const ENDED = "tracing:holdfast:cache:asyncEnd";
let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfasts: Holdfast[];
let stops: (() => unknown)[];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  stops = [];
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  holdfasts = clients.map((client) => createHoldfast({ redis: client, commandTimeoutMs }));
});

afterEach(async () => {
  await Promise.all(holdfasts.map((each) => each.close()));
  for (const client of clients) client.disconnect();
  for (const stop of stops.toReversed()) await stop();
  expect(tracingChannel("holdfast:cache").hasSubscribers).toBe(false);
  await redis.flushall();
});

/** Two caches on separate clients, which stand for two processes. */
function pair(options: CacheOptions<string> = {}): [here: Cache<string>, there: Cache<string>] {
  const make = (at: number): Cache<string> =>
    cache(holdfasts[at] as Holdfast, "user", { leaseMs: 120_000, ...options });
  return [make(0), make(1)];
}

/** A loader that runs until `end` is called. */
function held(): { load: (lease: LoadLease) => Promise<string>; began: Promise<void>; end: (value: string) => void } {
  const begun = deferred<void>();
  const ended = deferred<string>();
  const load = (): Promise<string> => {
    begun.resolve();
    return ended.promise;
  };
  return { load, began: begun.promise, end: ended.resolve };
}

/** Resolves when another client waits for the entry and is subscribed to its message. */
async function waitsFor(): Promise<void> {
  await vi.waitFor(async () => {
    expect(await redis.hget(entry, "waited")).toBe("1");
    expect(await redis.pubsub("NUMSUB", `${entry}:filled`)).toContain(1);
  }, eventually);
}

const never = (): Promise<never> => new Promise(() => {});

describe("a cache call reports", () => {
  let heard: { lockName: string; outcome: string; error?: unknown }[];
  /** Returns and clears the outcomes so far, in the order in which the calls ended. */
  const outcomes = (): string[] => heard.splice(0).map(({ outcome }) => outcome);

  beforeEach(() => {
    heard = [];
    const listener = (message: unknown): void => void heard.push(message as (typeof heard)[number]);
    subscribe(ENDED, listener);
    stops.push(() => unsubscribe(ENDED, listener));
  });

  test("its own load, a load that it joined here or elsewhere, or a fresh value", async () => {
    const [here, there] = pair();
    const loading = held();
    const first = here.get("42", loading.load);
    await loading.began;
    const others = [here.get("42", never), there.get("42", never, patient)];
    await waitsFor();
    loading.end("ana");
    await Promise.all([first, ...others]);
    expect(heard[0]).toMatchObject({ kind: "cache", lockName: "user/42", cacheName: "user", outcome: "loaded" });
    expect(outcomes()).toEqual(["loaded", "joined", "joined"]);
    await Promise.all([there.get("42", never), there.get("42", never)]);
    expect(outcomes()).toEqual(["fresh", "fresh"]);
  });

  test("a join if it waited for the load and then read the value", async () => {
    const [here, there] = pair();
    const loading = held();
    const first = here.get("42", loading.load);
    await loading.began;
    const waiting = there.get("42", never, patient);
    await waitsFor();
    // Too large for a message, so the waiter has to read it.
    loading.end("x".repeat(10_000));
    await first;
    expect(outcomes()).toEqual(["loaded"]);
    await waiting;
    expect(outcomes()).toEqual(["joined"]);
  });

  test("a stale value, no matter which caller reloads it", async () => {
    const [here, there] = pair({ staleMs: 600_000 });
    await here.get("42", () => "old");
    await redis.hset(entry, "fresh", 0);
    heard = [];
    const loading = held();
    expect(await here.get("42", loading.load)).toBe("old");
    await loading.began;
    expect(await there.get("42", never)).toBe("old");
    expect(outcomes()).toEqual(["stale", "stale"]);
    loading.end("new");
    await vi.waitFor(async () => expect(await there.get("42", never)).toBe("new"), eventually);
    expect(outcomes().at(-1)).toBe("fresh");
  });

  test.each([
    ["if another caller loads again", "120000000"],
    ["if no caller loads again", "-120000000"],
  ])("a join if a stale value arrives while it waits, %s", async (_who, restUs) => {
    const [here, there] = pair({ staleMs: 600_000 });
    const loading = held();
    const first = here.get("42", loading.load);
    await loading.began;
    const waiting = there.get("42", () => "new", patient);
    await waitsFor();
    const nowUs = Date.now() * 1_000;
    const old = { value: '"old"', fresh: 0, stale: nowUs + 600_000_000, until: nowUs + Number(restUs) };
    await redis.hset(entry, old);
    await redis.publish(`${entry}:filled`, "?");
    expect(await waiting).toBe("old");
    expect(outcomes()).toEqual(["joined"]);
    loading.end("ana");
    await first;
  });

  test("a load alone after it waited too long, once for all callers here", async () => {
    const [here, there] = pair();
    const loading = held();
    const first = here.get("42", loading.load);
    await loading.began;
    const load = (): string => "alone";
    await Promise.all([there.get("42", load, { waitMs: 0 }), there.get("42", load, patient)]);
    expect(outcomes()).toEqual(["alone", "joined"]);
    loading.end("ana");
    await first;
    expect(outcomes()).toEqual(["loaded"]);
  });

  test("a load alone, or a failure, while the server is down", async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port, retryStrategy: () => null });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    await own.stop();
    expect(await cache(local, "user").get("42", () => "ana")).toBe("ana");
    expect(outcomes()).toEqual(["alone"]);
    const refusing = cache(local, "strict", { whenUnavailable: "reject" }).get("42", never);
    await expect(refusing).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
    expect(outcomes()).toEqual(["failed"]);
    await local.close();
    client.disconnect();
  });

  test("its own load after another caller's load failed", async () => {
    const [here] = pair();
    const error = new Error("down");
    const settled = await Promise.allSettled([
      here.get("42", () => Promise.reject(error)),
      here.get("42", () => "ana"),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(heard[0]).toMatchObject({ error });
    expect(outcomes()).toEqual(["failed", "loaded"]);
  });

  test("a failure, like all callers that joined the last allowed attempt", async () => {
    const [here] = pair({ attemptsMax: 1 });
    await Promise.allSettled([here.get("42", () => Promise.reject(new Error("down"))), here.get("42", never)]);
    expect(outcomes()).toEqual(["failed", "failed"]);
  });

  test("an abort if it gives up, while its load continues for the other callers", async () => {
    const [here] = pair();
    const loading = held();
    const controller = new AbortController();
    const first = here.get("42", loading.load, { signal: controller.signal });
    await loading.began;
    const second = here.get("42", never);
    controller.abort(new Error("no longer"));
    await expect(first).rejects.toThrow("no longer");
    expect(outcomes()).toEqual(["aborted"]);
    loading.end("ana");
    await second;
    expect(outcomes()).toEqual(["joined"]);
  });

  test("nothing if it is refused before it starts", async () => {
    const [here] = pair();
    await expect(here.get("", never)).rejects.toThrow("key");
    await expect(here.get("42", never, { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
    await holdfasts[0]?.close();
    await expect(here.get("42", never)).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    expect(heard).toEqual([]);
  });

  test("an abort if a subscriber to its start aborts it, and loads nothing", async () => {
    const [here] = pair();
    const controller = new AbortController();
    const abort = (): void => controller.abort(new Error("no longer wanted"));
    subscribe(STARTED, abort);
    stops.push(() => unsubscribe(STARTED, abort));
    await expect(here.get("42", never, { ...patient, signal: controller.signal })).rejects.toThrow("no longer wanted");
    expect(outcomes()).toEqual(["aborted"]);
    unsubscribe(STARTED, abort);
    expect(await here.get("42", () => "ana")).toBe("ana");
  });

  test("a failure if a subscriber to its start closes Holdfast", async () => {
    const [here] = pair();
    const close = (): void => void holdfasts[0]?.close();
    subscribe(STARTED, close);
    stops.push(() => unsubscribe(STARTED, close));
    await expect(here.get("42", never)).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    expect(outcomes()).toEqual(["failed"]);
  });
});

describe.each([
  ["prom-client", ofPrometheus],
  ["OpenTelemetry", ofOpenTelemetry],
])("in %s", (_, collector) => {
  let series: Read;

  beforeEach(() => {
    series = collector(stops);
  });

  test("calls are counted by outcome, per cache and not per key", async () => {
    const tenants = cache<string>(holdfasts[0] as Holdfast, "tenant:7");
    await tenants.get("ana", () => "a");
    await tenants.get("ana", never);
    await tenants.get("ana", never);
    await tenants.get("bob", () => "b");
    await tenants.get("eve", () => Promise.reject(new Error("down"))).catch(() => {});
    await cache<string>(holdfasts[0] as Holdfast, "user").get("42", () => "u");
    const counts = { fresh: 2, stale: 0, loaded: 2, alone: 0, joined: 0, failed: 1, aborted: 0 };
    const all = await series("cache.gets");
    expect(all.filter(({ labels }) => labels.group === "tenant:*")).toMatchObject(
      Object.entries(counts).map(([outcome, value]) => ({
        labels: { group: "tenant:*", kind: "cache", outcome },
        value,
      })),
    );
    expect(all.filter(({ value }) => value > 0).map(({ labels }) => labels.group)).toContain("user");
    expect(all).toHaveLength(2 * Object.keys(counts).length);
    const held = (await series("lock.held")).map(({ labels }) => labels.group);
    expect(held, "a cache is no lock; the lease of each load is one").not.toContain("user");
  });

  test("a call that has started exports zeros, so that its failure shows as an increase", async () => {
    const begun = deferred<void>();
    const ended = deferred<string>();
    const load = (): Promise<string> => {
      begun.resolve();
      return ended.promise;
    };
    const failing = cache<string>(holdfasts[0] as Holdfast, "user").get("42", load);
    await begun.promise;
    const zeros = { fresh: 0, stale: 0, loaded: 0, alone: 0, joined: 0, failed: 0, aborted: 0 };
    const counts = async (): Promise<object> =>
      Object.fromEntries((await series("cache.gets")).map(({ labels, value }) => [labels.outcome, value]));
    expect(await counts()).toEqual(zeros);
    ended.reject(new Error("down"));
    await expect(failing).rejects.toThrow("down");
    expect(await counts()).toEqual({ ...zeros, failed: 1 });
  });

  test("stopping unsubscribes from cache events", async () => {
    const users = cache<string>(holdfasts[0] as Holdfast, "user");
    stops.pop()?.();
    expect(tracingChannel("holdfast:cache").hasSubscribers).toBe(false);
    expect(await users.get("42", () => "ana")).toBe("ana");
  });
});
