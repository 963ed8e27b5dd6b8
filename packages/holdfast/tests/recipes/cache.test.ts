/** A cache in which each value is loaded once, on a real server. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy } from "../../../../tests/support/tcp-proxy.js";
import { systemRuntime } from "../../src/core/runtime.js";
import {
  recipesCacheFail,
  recipesCacheFill,
  recipesCacheInvalidate,
  recipesCacheLook,
} from "../../src/generated/recipes-scripts.js";
import { createHoldfastOn } from "../../src/holdfast.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { type Cache, CacheLoadError, type CacheOptions, cache, type LoadLease } from "../../src/recipes/index.js";
import { deferred, withLeaseInTime } from "../../src/testing/delays.js";

// Nothing here is about time, and a machine that does much else may take its own.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });
const eventually = { timeout: 60_000, interval: 10 };
const commandTimeoutMs = 60_000;
const patient = { waitMs: Infinity };
let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client, commandTimeoutMs })) as [
    Holdfast,
    Holdfast,
  ];
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  for (const client of [redis, ...(clients ?? [])]) client?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  key = randomUUID();
});

/** Two processes that share a cache, as far as two clients stand for them. */
function pair<Value>(options: CacheOptions<Value> = {}): [here: Cache<Value>, there: Cache<Value>] {
  const all = { leaseMs: 120_000, ...options };
  return [cache<Value>(holdfast, "user", all), cache<Value>(other, "user", all)];
}

function entry(): string {
  return `hf:cache:{user/${key}}`;
}

/** A loader that goes on until it is told how to end, unless it is aborted. */
function held<Value>(): {
  load: (lease: LoadLease) => Promise<Value>;
  began: Promise<LoadLease>;
  end: (value: Value | Promise<Value>) => void;
} {
  const begun = deferred<LoadLease>();
  const ended = deferred<Value>();
  return {
    load: (lease) => {
      begun.resolve(lease);
      lease.signal.addEventListener("abort", () => ended.reject(lease.signal.reason));
      return ended.promise;
    },
    began: begun.promise,
    end: ended.resolve,
  };
}

/** Resolves when somebody in another process waits for that entry, and hears of it. */
async function waitsFor(count = 1): Promise<void> {
  await vi.waitFor(async () => {
    expect(await redis.hget(entry(), "waited")).toBe("1");
    expect(await redis.pubsub("NUMSUB", `${entry()}:filled`)).toContain(count);
  }, eventually);
}

describe("a value that is not there", () => {
  test("is loaded once, and all get it: here the same object, elsewhere by the message", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const [here] = pair<{ n: number }>();
    const there = cache<{ n: number }>(local, "user");
    await there.get(`${key}:warm`, () => ({ n: 0 }), patient);
    const loading = held<{ n: number }>();
    const load = vi.fn(loading.load);
    const values = Array.from({ length: 20 }, () => here.get(key, load));
    const { token } = await loading.began;
    expect(token).toBeGreaterThan(0);
    const remote = Array.from({ length: 20 }, () => there.get(key, load, patient));
    await waitsFor();
    // From here on it asks for nothing.
    const asking = proxy.hold(/evalsha/i);
    loading.end({ n: 1 });
    const all = await Promise.all([...values, ...remote]);
    asking.release();
    expect(load).toHaveBeenCalledTimes(1);
    for (const value of all) expect(value).toEqual({ n: 1 });
    expect(new Set(all).size).toBe(2);
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test("is one read for whoever finds it fresh", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const [here] = pair<string>();
    const there = cache<string>(local, "user");
    await there.get(`${key}:warm`, () => "warm", patient);
    await here.get(key, () => "value");
    const before = proxy.counts.requests;
    const load = vi.fn(() => "other");
    expect(await there.get(key, load, patient)).toBe("value");
    expect(proxy.counts.requests - before).toBe(1);
    expect(load).not.toHaveBeenCalled();
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test.each([
    ["just fits into the message", 8_000],
    ["is read, since no message carries it", 20_000],
  ])("%s", async (_, length) => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const second = there.get(key, () => "never", patient);
    await waitsFor();
    loading.end("é".repeat(length / 2));
    expect(await second).toBe("é".repeat(length / 2));
    await first;
  });

  test.each([
    ["too large", "x".repeat(200)],
    ["none that can be kept", () => "a function"],
  ])("is not kept if it is %s, and nobody waits for what cannot be kept", async (_, value) => {
    const [here, there] = pair<unknown>({ valueBytesMax: 100 });
    const loading = held<unknown>();
    const first = here.get(key, loading.load);
    await loading.began;
    const second = there.get(key, () => "by itself", patient);
    await waitsFor();
    loading.end(value);
    expect(await first).toBe(value);
    expect(await second).toBe("by itself");
    expect(await here.get(key, () => "again")).toBe("again");
  });

  test("that is negative is kept for as long as that may be, and is never stale", async () => {
    const load = vi.fn(() => null);
    const [here, there] = pair<null>({ freshMs: 600_000, staleMs: 600_000, negativeMs: 100 });
    expect(await here.get(key, load)).toBe(null);
    expect(await redis.pttl(entry())).toBeLessThanOrEqual(100);
    await vi.waitFor(async () => expect(await redis.exists(entry())).toBe(0), eventually);
    expect(await there.get(key, load, patient)).toBe(null);
    expect(load).toHaveBeenCalledTimes(2);
    const [kept] = pair<null>({ isNegative: () => false });
    key = randomUUID();
    await kept.get(key, load);
    expect(await redis.pttl(entry())).toBeGreaterThan(5_000);
  });

  test("that is negative and not kept is told to those who wait", async () => {
    const [here, there] = pair<undefined>({ negativeMs: 0 });
    const loading = held<undefined>();
    const first = here.get(key, loading.load);
    await loading.began;
    const load = vi.fn(() => undefined);
    const second = there.get(key, load, patient);
    await waitsFor();
    loading.end(undefined);
    expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
    expect(load).not.toHaveBeenCalled();
    expect(await there.get(key, load, patient)).toBe(undefined);
    expect(load).toHaveBeenCalledTimes(1);
  });

  test("stays fresh for a time of its own", async () => {
    const [here] = pair<number>({ freshMs: 100_000, jitter: 0.5 });
    const ends = new Set<number>();
    for (let n = 0; n < 20; n += 1) {
      key = randomUUID();
      await here.get(key, () => n);
      ends.add(Math.round((await redis.pttl(entry())) / 1_000));
    }
    expect(ends.size).toBeGreaterThan(5);
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(30);
  });
});

describe("a value that is stale", () => {
  const options = { freshMs: 1, staleMs: 600_000, jitter: 0 };

  test("is given at once, while one process loads it anew", async () => {
    const [here, there] = pair<string>(options);
    await here.get(key, () => "old");
    await vi.waitFor(
      async () => expect(Number(await redis.hget(entry(), "fresh"))).toBeLessThan(await nowUs()),
      eventually,
    );
    const loading = held<string>();
    const load = vi.fn(loading.load);
    const values = await Promise.all([here.get(key, load), there.get(key, load, patient), here.get(key, load)]);
    expect(values).toEqual(["old", "old", "old"]);
    await loading.began;
    expect(await there.get(key, load, patient)).toBe("old");
    expect(load).toHaveBeenCalledTimes(1);
    loading.end("new");
    await vi.waitFor(async () => expect(await redis.hget(entry(), "value")).toBe('"new"'), eventually);
  });

  test("wins over an error, which is told, and the source is left alone for a while", async () => {
    const errors: unknown[] = [];
    const onReloadError = (error: unknown, of: string): void => void errors.push([of, error]);
    const [here, there] = pair<string>({ ...options, onReloadError });
    await here.get(key, () => "old");
    const error = new Error("the source is down");
    const load = vi.fn(() => Promise.reject(error));
    await vi.waitFor(async () => {
      expect(await here.get(key, load)).toBe("old");
      expect(errors).toEqual([[key, error]]);
    }, eventually);
    const [owner, untilUs] = await redis.hmget(entry(), "owner", "until");
    expect(owner).toBe(null);
    expect(Number(untilUs)).toBeGreaterThan(0);
    expect(Number(untilUs)).toBeLessThanOrEqual((await nowUs()) + 1_000_000);
    expect(await there.get(key, load, patient)).toBe("old");
  });

  test("is loaded anew in vain without harm, also if whoever is told of it fails to pass that on", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    // No mock: that looks at what it returns, and so handles it.
    let told = 0;
    const onReloadError = (): unknown => {
      told += 1;
      return Promise.reject(new Error("the log is down"));
    };
    const [here] = pair<string>({ ...options, onReloadError });
    await here.get(key, () => "old");
    const load = (): Promise<string> => Promise.reject(new Error("the source is down"));
    await vi.waitFor(async () => {
      expect(await here.get(key, load)).toBe("old");
      expect(told).toBeGreaterThan(0);
    }, eventually);
    // Node tells of it when it has done what is due now.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  });

  async function nowUs(): Promise<number> {
    const [seconds, us] = await redis.time();
    return Number(seconds) * 1_000_000 + Number(us);
  }
});

describe("an invalidation", () => {
  test("during a load: who asked before gets the value, which is not kept; who asks after it, or came late, gets a new one", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const early = here.get(key, loading.load);
    await loading.began;
    const late = here.get(key, () => "new");
    await there.invalidate(key);
    const after = there.get(key, () => "new", patient);
    loading.end("old");
    expect(await early).toBe("old");
    expect(await late).toBe("new");
    expect(await after).toBe("new");
    expect(await here.get(key, () => "newest")).toBe("new");
  });

  test("tells whoever waits in another process", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const waiting = there.get(key, () => "new", patient);
    await waitsFor();
    const told: string[] = [];
    const subscriber = redis.duplicate();
    subscriber.on("message", (_, message) => told.push(message));
    await subscriber.subscribe(`${entry()}:filled`);
    await here.invalidate(key);
    expect(await waiting).toBe("new");
    await vi.waitFor(() => expect(told).toContain("~"), eventually);
    subscriber.disconnect();
    expect(await here.get(key, () => "newest")).toBe("new");
    loading.end("old");
    expect(await first).toBe("old");
    expect(await there.get(key, () => "newest", patient)).toBe("new");
  });

  test("tells the loader that what it loads is not kept", () =>
    withLeaseInTime(async (leaseMs) => {
      key = randomUUID();
      const [here, there] = pair<string>({ leaseMs });
      const loading = held<string>();
      const first = here.get(key, loading.load);
      const lease = await loading.began;
      try {
        lease.assertHeld();
        await there.invalidate(key);
        await vi.waitFor(() => expect(() => lease.assertHeld()).toThrow("server"), eventually);
        expect(lease.signal.aborted).toBe(false);
      } finally {
        loading.end("old");
      }
      expect(await first).toBe("old");
    }));

  test("while somebody loads alone: who asked before gets the value, who asks after it a new one", async () => {
    const [here, there] = pair<string>();
    const elsewhere = held<string>();
    const first = there.get(key, elsewhere.load);
    await elsewhere.began;
    const alone = held<string>();
    const early = here.get(key, alone.load, { waitMs: 2_000 });
    await waitsFor();
    await alone.began;
    // What comes after the message on the same way comes after it.
    const blocker = await other.mutex(key).acquire();
    const heard = holdfast.mutex(key).acquire({ waitMs: Infinity });
    await vi.waitFor(async () => expect(await redis.zcard(`hf:mutex:{${key}}:queue`)).toBe(1), eventually);
    await there.invalidate(key);
    await blocker.release();
    await (await heard).release();
    const late = here.get(key, () => "new", patient);
    alone.end("old");
    expect(await early).toBe("old");
    expect(await late).toBe("new");
    elsewhere.end("old");
    expect(await first).toBe("old");
  });

  test("of a value that is there makes the next one load", async () => {
    const [here, there] = pair<number>();
    expect(await here.get(key, () => 1)).toBe(1);
    await there.invalidate(key);
    expect(await here.get(key, () => 2)).toBe(2);
  });
});

describe("a loader that was overtaken", () => {
  test("does not overwrite what a faster one has found", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const slow = here.get(key, loading.load);
    await loading.began;
    // As when its process has stood still for longer than its lease.
    await redis.hset(entry(), "until", 1);
    expect(await there.get(key, () => "fast", patient)).toBe("fast");
    loading.end("slow");
    expect(await slow).toBe("slow");
    expect(await there.get(key, () => "third", patient)).toBe("fast");
  });

  test("fills all the same if nobody has begun since", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const slow = here.get(key, loading.load);
    await loading.began;
    await redis.hset(entry(), "until", 1);
    loading.end("slow");
    await slow;
    expect(await there.get(key, () => "third", patient)).toBe("slow");
  });
});

describe("a load that fails", () => {
  test("is tried by one of those who wait; its error goes to its own caller alone", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const error = new Error("not now");
    const first = here.get(key, loading.load);
    await loading.began;
    const load = vi.fn(() => "second");
    const waiting = [here.get(key, load), there.get(key, load, patient), there.get(key, load, patient)];
    await waitsFor();
    loading.end(Promise.reject(error));
    await expect(first).rejects.toBe(error);
    expect(await Promise.all(waiting)).toEqual(["second", "second", "second"]);
    expect(load).toHaveBeenCalledTimes(1);
  });

  test("too often is told to all", async () => {
    const [here, there] = pair<string>({ attemptsMax: 3 });
    const loading = held<string>();
    const load = vi.fn(async (lease: LoadLease) => {
      if (load.mock.calls.length === 1) return loading.load(lease);
      throw Object.assign(new RangeError(`failure ${load.mock.calls.length}`), { code: "E_DOWN" });
    });
    const all = [here, here, here, here, here].map((users) => users.get(key, load));
    const settled = Promise.allSettled(all);
    await loading.began;
    const elsewhere = there.get(key, () => new Promise<string>(() => {}), patient);
    // It waits, and takes part neither in the second attempt nor in the third.
    elsewhere.catch(() => {});
    await waitsFor();
    await redis.hset(entry(), "failures", 2);
    loading.end(Promise.reject(new RangeError("failure 1")));
    const [result] = await Promise.allSettled([elsewhere]);
    expect(result).toMatchObject({ reason: { name: "CacheLoadError", failure: { name: "RangeError" } } });
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(CacheLoadError);
    for (const { status } of await settled) expect(status).toBe("rejected");
    expect(load).toHaveBeenCalledTimes(1);
    // It is no sentence for ever.
    expect(await there.get(key, () => "at last", patient)).toBe("at last");
  });

  test("runs as often as it may in one process, one after the other", async () => {
    const [here] = pair<string>({ attemptsMax: 3 });
    let running = 0;
    const load = vi.fn(async () => {
      running += 1;
      expect(running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      throw new Error("no");
    });
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => here.get(key, load)));
    expect(results.every(({ status }) => status === "rejected")).toBe(true);
    expect(load).toHaveBeenCalledTimes(3);
    expect(await here.get(key, () => "now")).toBe("now");
  });
});

describe("who waits", () => {
  test("too long loads alone, once for all of its process, and that is not kept", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const load = vi.fn(async (lease: LoadLease) => {
      lease.assertHeld();
      expect(lease.token).toBe(undefined);
      return "alone";
    });
    const alone = [
      there.get(key, load, { waitMs: 0 }),
      there.get(key, load, patient),
      there.get(key, load, { waitMs: 20 }),
    ];
    expect(await Promise.all(alone)).toEqual(["alone", "alone", "alone"]);
    expect(load).toHaveBeenCalledTimes(1);
    loading.end("first");
    expect(await first).toBe("first");
    expect(await there.get(key, load, patient)).toBe("first");
  });

  test("is no work for those who come after it: each has its own end, and the first end counts", async () => {
    const client = new Redis({ port: server.port });
    const startTimer = vi.fn(systemRuntime.startTimer);
    const local = createHoldfastOn({ ...systemRuntime, startTimer }, { redis: client, commandTimeoutMs });
    const [here] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const users = cache<string>(local, "user");
    const load = vi.fn(() => "alone");
    const waiting = [users.get(key, load, patient)];
    await waitsFor();
    // It has asked again after its subscription, and rests.
    const rests = (): boolean => startTimer.mock.calls.some(([, delayMs, keepAlive]) => keepAlive && delayMs > 1_000);
    await vi.waitFor(() => expect(rests()).toBe(true), eventually);
    startTimer.mockClear();
    for (let count = 0; count < 1_000; count += 1) waiting.push(users.get(key, load, patient));
    expect(startTimer).not.toHaveBeenCalled();
    expect(await users.get(key, load, { waitMs: 0 })).toBe("alone");
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["alone"]));
    expect(load).toHaveBeenCalledTimes(1);
    loading.end("first");
    await first;
    await local.close();
    client.disconnect();
  });

  test("and loads alone in the end takes what comes from elsewhere first", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const alone = held<string>();
    const impatient = there.get(key, alone.load, { waitMs: 2_000 });
    await waitsFor();
    const { signal } = await alone.began;
    loading.end("first");
    expect(await Promise.all([first, impatient])).toEqual(["first", "first"]);
    expect(signal.aborted).toBe(true);
  });

  test("and gives up leaves the load to the others; the last one ends it", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const controllers = [new AbortController(), new AbortController(), new AbortController()] as const;
    const all = controllers.map(({ signal }) => here.get(key, loading.load, { signal }));
    const settled = Promise.allSettled(all);
    const { signal } = await loading.began;
    controllers[0].abort(new Error("first"));
    await expect(all[0]).rejects.toThrow("first");
    controllers[1].abort(new Error("second"));
    await expect(all[1]).rejects.toThrow("second");
    expect(signal.aborted).toBe(false);
    controllers[2].abort(new Error("last"));
    await settled;
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ message: "last" });
    // Given back as soon as the loader has ended, and no failure of it.
    expect(await there.get(key, () => "next", patient)).toBe("next");
    expect(await redis.hget(entry(), "failures")).toBe(null);
  });

  test("and gives up while another process loads leaves the others there, and the last one leaves nobody who listens", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const controller = new AbortController();
    const load = vi.fn(() => "never");
    const leaving = there.get(key, load, { ...patient, signal: controller.signal });
    const rejected = expect(leaving).rejects.toThrow("no longer");
    const staying = there.get(key, load, patient);
    await waitsFor();
    controller.abort(new Error("no longer"));
    await rejected;
    loading.end("first");
    expect(await Promise.all([first, staying])).toEqual(["first", "first"]);

    key = randomUUID();
    const another = held<string>();
    const second = here.get(key, another.load);
    await another.began;
    const last = new AbortController();
    const alone = there.get(key, load, { ...patient, signal: last.signal });
    const ended = expect(alone).rejects.toThrow("nor I");
    await waitsFor();
    last.abort(new Error("nor I"));
    await ended;
    await waitsFor(0);
    another.end("second");
    expect(await second).toBe("second");
    expect(load).not.toHaveBeenCalled();
  });

  test("and gives up while its question is on the way leaves nothing behind", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const users = cache<string>(local, "user");
    await users.get(`${key}:warm`, () => "warm");
    const look = proxy.hold(/evalsha .*cache/i);
    const controller = new AbortController();
    const load = vi.fn(() => "never");
    const leaving = users.get(key, load, { signal: controller.signal });
    await look.reached;
    controller.abort(new Error("no longer"));
    await expect(leaving).rejects.toThrow("no longer");
    look.release();
    await vi.waitFor(async () => {
      expect(await redis.hget(entry(), "token")).not.toBe(null);
      expect(await redis.hget(entry(), "owner")).toBe(null);
    }, eventually);
    expect(load).not.toHaveBeenCalled();
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test.each(["finds something", "fails"])(
    "that %s is waited for by a Holdfast that closes, which says that it was given back",
    async (how) => {
      const client = new Redis({ port: server.port });
      const local = createHoldfast({ redis: client, commandTimeoutMs });
      const [begun, ended] = [deferred<void>(), deferred<string>()];
      // It does not heed its signal.
      const first = cache<string>(local, "user").get(key, () => {
        begun.resolve();
        return ended.promise;
      });
      await begun.promise;
      const closed = local.close({ graceMs: 60_000 });
      if (how === "fails") ended.reject(new Error("no"));
      else ended.resolve("value");
      expect(await first.catch(({ message }: Error) => message)).toBe(how === "fails" ? "no" : "value");
      expect(await closed).toMatchObject({ released: [{ kind: "cache", name: `user/${key}` }], unsettled: [] });
      client.disconnect();
    },
  );

  test("hears that its Holdfast was closed", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const [here] = pair<string>();
    const loading = held<string>();
    const first = here.get(key, loading.load);
    await loading.began;
    const waiting = cache<string>(local, "user").get(key, () => "never", patient);
    const rejected = expect(waiting).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    await waitsFor();
    await local.close();
    await rejected;
    await expect(cache<string>(local, "user").get(key, () => "never")).rejects.toMatchObject({
      code: "ERR_LOCK_CLOSED",
    });
    loading.end("first");
    await first;
    client.disconnect();
  });
});

describe("replies that are lost", () => {
  test.each([
    ["look", recipesCacheLook],
    ["fill", recipesCacheFill],
    ["fail", recipesCacheFail],
    ["invalidate", recipesCacheInvalidate],
  ] as const)("%s counts once", async (step, script) => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const users = cache<string>(local, "user", { attemptsMax: 3 });
    await users.get(`${key}:warm`, () => "warm");
    await users.get(`${key}:cold`, () => Promise.reject(new Error("cold"))).catch(() => {});
    await users.invalidate(`${key}:warm`);
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${script.sha1}`, "i"));
    const load = vi.fn(() => "value");
    if (step === "fail") {
      await expect(users.get(key, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
      await vi.waitFor(async () => expect(await redis.hget(entry(), "failures")).toBe("1"), eventually);
    }
    expect(await users.get(key, load)).toBe("value");
    if (step === "invalidate") {
      await users.invalidate(key);
      expect(await users.get(key, load)).toBe("value");
    }
    await struck;
    expect(load).toHaveBeenCalledTimes(step === "invalidate" ? 2 : 1);
    expect(await redis.hget(entry(), "value")).toBe('"value"');
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test("of a fill is no reason to load again, for those who came late either", () =>
    behindProxy(async (users, proxy) => {
      const loading = held<string | null>();
      const first = users.get(key, loading.load);
      await loading.began;
      const load = vi.fn(() => "never");
      const late = users.get(key, load);
      const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${recipesCacheFill.sha1}`, "i"));
      loading.end(null);
      await struck;
      expect(await Promise.all([first, late])).toEqual([null, null]);
      expect(load).not.toHaveBeenCalled();
    }));

  test("of a fill that is not answered at all: who came after the load had begun, and maybe after an invalidation, is served by a new one", () =>
    behindProxy(
      async (users, proxy) => {
        const loading = held<string | null>();
        const first = users.get(key, loading.load);
        await loading.began;
        const [, there] = pair<string>();
        await there.invalidate(key);
        const late = users.get(key, () => "new");
        proxy.refuse(true);
        proxy.cutAll();
        loading.end("old");
        expect(await Promise.all([first, late])).toEqual(["old", "new"]);
      },
      { commandTimeoutMs: 200 },
    ));

  test("of a fill to a server that is silent: who asked before the load began does not wait for it", () =>
    behindProxy(
      async (users, proxy) => {
        const loading = held<string | null>();
        const before = [users.get(key, loading.load), users.get(key, () => "never")];
        await loading.began;
        const late = users.get(key, () => "never");
        proxy.refuse(true);
        proxy.cutAll();
        loading.end("value");
        expect(await Promise.all(before)).toEqual(["value", "value"]);
        proxy.refuse(false);
        expect(await late, "it was kept in the end").toBe("value");
      },
      // Longer than the test may take, were it waited for.
      { commandTimeoutMs: 60_000 },
    ));

  test("that it was the last attempt still ends it for all", () =>
    behindProxy(async (users, proxy) => {
      const loading = held<string>();
      const first = users.get(key, loading.load);
      await loading.began;
      const load = vi.fn(() => "never");
      const all = Promise.allSettled([first, users.get(key, load), users.get(key, load)]);
      // As others have counted before.
      await redis.hset(entry(), "failures", 2);
      const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${recipesCacheFail.sha1}`, "i"));
      loading.end(Promise.reject(new Error("no")));
      await struck;
      for (const result of await all) expect(result).toMatchObject({ status: "rejected", reason: { message: "no" } });
      expect(load).not.toHaveBeenCalled();
    }));

  test("an invalidation that arrives twice does not take what was loaded in between", async () => {
    const [here] = pair<string>();
    const invalidate = (): Promise<unknown> =>
      redis.eval(recipesCacheInvalidate.source, 1, entry(), "request", 60_000, `${entry()}:filled`, "~");
    await here.get(key, () => "old");
    await invalidate();
    expect(await here.get(key, () => "new")).toBe("new");
    await invalidate();
    expect(await here.get(key, () => "newest")).toBe("new");
    expect(await redis.eval(recipesCacheFill.source, 1, entry(), "nobody", 1, '"odd"', 1_000, 0, "c", "m")).toEqual([
      2,
    ]);
  });

  async function behindProxy(
    play: (users: Cache<string | null>, proxy: Awaited<ReturnType<typeof startProxy>>) => Promise<void>,
    options = { commandTimeoutMs },
  ): Promise<void> {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, ...options });
    try {
      const users = cache<string | null>(local, "user", { attemptsMax: 3, negativeMs: 0 });
      await users.get(`${key}:warm`, () => "warm");
      await users.get(`${key}:cold`, () => Promise.reject(new Error("cold"))).catch(() => {});
      await play(users, proxy);
    } finally {
      await local.close();
      client.disconnect();
      await proxy.close();
    }
  }

  test("a message that is lost costs time, and nothing else", () =>
    withLeaseInTime(async (leaseMs) => {
      key = randomUUID();
      const proxy = await startProxy(server.port);
      const client = new Redis({ port: proxy.port });
      const local = createHoldfast({ redis: client, commandTimeoutMs });
      const [here] = pair<string>({ leaseMs });
      const loading = held<string>();
      const load = vi.fn(() => "never");
      try {
        const first = here.get(key, loading.load);
        await loading.began;
        const waiting = cache<string>(local, "user", { leaseMs }).get(key, load, patient);
        await waitsFor();
        proxy.dropMessages(true);
        loading.end("value");
        expect(await Promise.all([first, waiting])).toEqual(["value", "value"]);
        expect(load).not.toHaveBeenCalled();
        expect(proxy.counts.droppedMessages).toBeGreaterThan(0);
      } finally {
        loading.end("value");
        await local.close();
        client.disconnect();
        await proxy.close();
      }
    }, 1_000));
});

test("nothing is left that has no end, and nobody listens", async () => {
  const [here, there] = pair<string>();
  const loading = held<string>();
  const first = here.get(key, loading.load);
  await loading.began;
  expect(await redis.pttl(entry())).toBeGreaterThan(0);
  const second = there.get(key, () => "never", patient);
  await waitsFor();
  loading.end("value");
  await Promise.all([first, second]);
  await vi.waitFor(async () => expect(await redis.pubsub("NUMSUB", `${entry()}:filled`)).toContain(0), eventually);
  await here.invalidate(key);
  const keys = (await redis.keys("hf:cache:*")).filter((each) => each.includes(key));
  expect(keys.length).toBeGreaterThan(0);
  for (const each of keys) expect(await redis.pttl(each), each).toBeGreaterThan(0);
  expect(holdfast.held().filter((lease) => lease.name.includes(key))).toEqual([]);
});

test.each([
  [{ freshMs: 0 }, "freshMs"],
  [{ staleMs: -1 }, "staleMs"],
  [{ negativeMs: 1.5 }, "negativeMs"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ whenUnavailable: "wait" }, "whenUnavailable"],
  [{ jitter: 2 }, "jitter"],
  [{ attemptsMax: 0 }, "attemptsMax"],
  [{ valueBytesMax: -1 }, "valueBytesMax"],
  [{ codec: {} }, "codec"],
  [{ isNegative: 5 }, "isNegative"],
  [{ onReloadError: 5 }, "onReloadError"],
  [{ ttl: 5 }, "ttl"],
])("a wrong option is refused by its name: %o", (options, name) => {
  expect(() => cache(holdfast, "user", options as object)).toThrow(name);
});

test("a wrong argument is refused before anything is sent", async () => {
  const users = cache<string>(holdfast, "user");
  const load = vi.fn();
  expect(() => cache(holdfast, "")).toThrow("name must be 1 to 255 bytes");
  await expect(users.get("", load)).rejects.toThrow("key must be 1 to 255 bytes");
  await expect(users.get(key, undefined as never)).rejects.toThrow("load must be a function");
  await expect(users.get(key, load, { waitMs: -1 })).rejects.toThrow("waitMs must be 0 or more");
  await expect(users.get(key, load, { leaseMs: 5 } as object)).rejects.toThrow('there is no option "leaseMs"');
  await expect(users.get(key, load, { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
  await expect(users.invalidate("")).rejects.toThrow("key must be 1 to 255 bytes");
  expect(load).not.toHaveBeenCalled();
  expect(await redis.exists(entry())).toBe(0);
});
