/** `cache` on a real server: each value is loaded once. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { systemRuntime } from "../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../holdfast/src/holdfast.js";
import { deferred, withLeaseInTime } from "../../holdfast/src/testing/delays.js";
import {
  recipesCacheFail,
  recipesCacheFill,
  recipesCacheInvalidate,
  recipesCacheLook,
} from "../src/generated/scripts.js";
import { type Cache, CacheLoadError, type CacheOptions, cache, type LoadLease } from "../src/index.js";

// Long timeouts, because these tests do not measure time and the machine may be busy.
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

/** Two clients that share a cache and stand for two processes. */
function pair<Value>(options: CacheOptions<Value> = {}): [here: Cache<Value>, there: Cache<Value>] {
  const all = { leaseMs: 120_000, ...options };
  return [cache<Value>(holdfast, "user", all), cache<Value>(other, "user", all)];
}

function entry(): string {
  return `hf:cache:{user/${key}}`;
}

/** A loader that runs until `end` is called or its signal aborts. */
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

/** Resolves when another client waits for the entry and has subscribed to its channel. */
async function waitsFor(count = 1): Promise<void> {
  await vi.waitFor(async () => {
    expect(await redis.hget(entry(), "waited")).toBe("1");
    expect(await redis.pubsub("NUMSUB", `${entry()}:filled`)).toContain(count);
  }, eventually);
}

describe("a missing value", () => {
  test("is loaded once; local callers get the same object and remote ones a message", async () => {
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
    // From here on, scripts of the remote client are held, so the value must come by message.
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

  test("costs one request for a later caller that finds it fresh", async () => {
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
    ["that just fits in the message is not read", 8_000],
    ["that is too large for the message is read", 20_000],
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
    ["not serializable", () => "a function"],
  ])("is not stored if it is %s, and waiters load it themselves", async (_, value) => {
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

  test("that is negative is stored for `negativeMs` and never served stale", async () => {
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

  test("that is negative and not stored still reaches waiters", async () => {
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

  test("stays fresh for a randomized time after its load", async () => {
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

describe("a stale value", () => {
  const options = { freshMs: 1, staleMs: 600_000, jitter: 0 };

  test("is returned immediately while one process reloads it", async () => {
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

  test("is returned despite a reload error, which is reported and delays the next reload", async () => {
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

  test("is returned if both its reload and `onReloadError` fail", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    // Not a mock, because a mock would handle the returned rejection.
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
    // Node reports unhandled rejections after the current turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  });

  async function nowUs(): Promise<number> {
    const [seconds, us] = await redis.time();
    return Number(seconds) * 1_000_000 + Number(us);
  }
});

describe("an invalidation", () => {
  test("during a load discards its value, except for calls made before the load began", async () => {
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

  test("notifies waiters in another process", async () => {
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

  test("notifies the loader that its value is not stored", () =>
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

  test("during a local load discards its value for later calls", async () => {
    const [here, there] = pair<string>();
    const elsewhere = held<string>();
    const first = there.get(key, elsewhere.load);
    await elsewhere.began;
    const alone = held<string>();
    const early = here.get(key, alone.load, { waitMs: 2_000 });
    await waitsFor();
    await alone.began;
    // A grant on the same connection arrives after the invalidation message, so it shows that the message has arrived.
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

  test("of a stored value makes the next caller load", async () => {
    const [here, there] = pair<number>();
    expect(await here.get(key, () => 1)).toBe(1);
    await there.invalidate(key);
    expect(await here.get(key, () => 2)).toBe(2);
  });
});

describe("a loader that lost its lease", () => {
  test("does not overwrite the value of a faster loader", async () => {
    const [here, there] = pair<string>();
    const loading = held<string>();
    const slow = here.get(key, loading.load);
    await loading.began;
    // Simulates a process that froze for longer than its lease.
    await redis.hset(entry(), "until", 1);
    expect(await there.get(key, () => "fast", patient)).toBe("fast");
    loading.end("slow");
    expect(await slow).toBe("slow");
    expect(await there.get(key, () => "third", patient)).toBe("fast");
  });

  test("still stores its value if no other loader has begun", async () => {
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
  test("is retried by one waiter, and only its own caller gets the error", async () => {
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

  test("`attemptsMax` times is reported to all waiters", async () => {
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
    // This caller only waits. It takes no part in the second or third attempt.
    elsewhere.catch(() => {});
    await waitsFor();
    await redis.hset(entry(), "failures", 2);
    loading.end(Promise.reject(new RangeError("failure 1")));
    const [result] = await Promise.allSettled([elsewhere]);
    expect(result).toMatchObject({ reason: { name: "CacheLoadError", failure: { name: "RangeError" } } });
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(CacheLoadError);
    for (const { status } of await settled) expect(status).toBe("rejected");
    expect(load).toHaveBeenCalledTimes(1);
    // The failure is not permanent.
    expect(await there.get(key, () => "at last", patient)).toBe("at last");
  });

  test("runs `attemptsMax` times in one process, one attempt at a time", async () => {
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

describe("a waiter", () => {
  test("that waits too long loads locally, once for its process, and stores nothing", async () => {
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

  test("starts no timer if others of its process already wait, and the shortest `waitMs` counts", async () => {
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
    // The first waiter has re-checked after its subscription and is idle.
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

  test("that loads locally takes a value that another process stores first", async () => {
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

  test("that gives up leaves the load to the others, and the last one aborts it", async () => {
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
    // The load is released as soon as the loader has ended, and it does not count as a failure.
    expect(await there.get(key, () => "next", patient)).toBe("next");
    expect(await redis.hget(entry(), "failures")).toBe(null);
  });

  test("that gives up on a remote load does not affect others, and the last one unsubscribes", async () => {
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

  test("that gives up during its request leaves nothing behind", async () => {
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
    "that loads and %s delays the close of its Holdfast, which reports the release",
    async (how) => {
      const client = new Redis({ port: server.port });
      const local = createHoldfast({ redis: client, commandTimeoutMs });
      const [begun, ended] = [deferred<void>(), deferred<string>()];
      // This loader ignores its signal.
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

  test("gets a ClosedError when its Holdfast closes", async () => {
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

describe("lost replies", () => {
  test.each([
    ["look", recipesCacheLook],
    ["fill", recipesCacheFill],
    ["fail", recipesCacheFail],
    ["invalidate", recipesCacheInvalidate],
  ] as const)("%s takes effect once", async (step, script) => {
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

  test("to a fill cause no second load, even for late callers", () =>
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

  test("to a fill without any later reply make late callers load again", () =>
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

  test("to a fill do not delay callers that came before the load began", () =>
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
      // If the callers waited for the reply, this timeout would exceed that of the test.
      { commandTimeoutMs: 60_000 },
    ));

  test("to the failure of the last attempt still end the load for all", () =>
    behindProxy(async (users, proxy) => {
      const loading = held<string>();
      const first = users.get(key, loading.load);
      await loading.began;
      const load = vi.fn(() => "never");
      const all = Promise.allSettled([first, users.get(key, load), users.get(key, load)]);
      // Simulates failures that other processes have counted.
      await redis.hset(entry(), "failures", 2);
      const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${recipesCacheFail.sha1}`, "i"));
      loading.end(Promise.reject(new Error("no")));
      await struck;
      for (const result of await all) expect(result).toMatchObject({ status: "rejected", reason: { message: "no" } });
      expect(load).not.toHaveBeenCalled();
    }));

  test("a duplicated invalidation does not remove a value loaded in between", async () => {
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

  test("a lost message only delays the value", () =>
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

test("all keys expire, and no subscription remains", async () => {
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
])("the error for an invalid option names the option: %o", (options, name) => {
  expect(() => cache(holdfast, "user", options as object)).toThrow(name);
});

test("an invalid argument is refused before anything is sent", async () => {
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
