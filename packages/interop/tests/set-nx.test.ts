/** A mutex with a mapped key, shared with clients that use SET key value NX PX: two libraries and a shell script. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { createHoldfast, type Holdfast, LeaseLostError, type LockOptions } from "holdfast";
import { systemRuntime } from "holdfast/simulation";
import { Redis } from "ioredis";
import { Mutex as SemaphoreMutex } from "redis-semaphore";
import Redlock from "redlock";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { createHoldfastOn } from "../../holdfast/src/holdfast.js";

/** Longer than any test. */
const NEVER_MS = 600_000;
const LEASE_MS = 30_000;
const eventually = { timeout: 15_000, interval: 10 };

let server: RedisServer;
let redis: Redis;
let client: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  client = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis: client });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  client?.disconnect();
  await server?.stop();
});

/** Acquires the lock at `key` with another client. Resolves to its release function, or undefined if it is held. */
type TryTake = (key: string, leaseMs?: number) => Promise<(() => Promise<unknown>) | undefined>;

const shell = promisify(execFile);
const cli = async (...words: readonly string[]): Promise<string> =>
  (await shell("redis-cli", ["-p", `${server.port}`, ...words])).stdout.trim();
const COMPARE_AND_DELETE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

const CLIENTS: readonly { readonly name: string; readonly rounds: number; readonly tryTake: TryTake }[] = [
  {
    name: "redlock",
    rounds: 30,
    async tryTake(key, leaseMs = LEASE_MS) {
      const redlock = new Redlock([redis], { retryCount: 0 });
      redlock.on("error", () => {});
      const lock = await redlock.acquire([key], leaseMs).catch(() => undefined);
      return lock && (() => lock.release());
    },
  },
  {
    name: "redis-semaphore",
    rounds: 30,
    async tryTake(key, leaseMs = LEASE_MS) {
      // The library's key is `mutex:` plus the name.
      const mutex = new SemaphoreMutex(redis, key.slice("mutex:".length), {
        lockTimeout: leaseMs,
        refreshInterval: 0,
        acquireAttemptsLimit: 1,
      });
      return (await mutex.tryAcquire()) ? () => mutex.release() : undefined;
    },
  },
  {
    name: "a shell script",
    rounds: 5,
    async tryTake(key, leaseMs = LEASE_MS) {
      const value = randomUUID();
      if ((await cli("SET", key, value, "NX", "PX", `${leaseMs}`)) !== "OK") return undefined;
      return () => cli("EVAL", COMPARE_AND_DELETE, "1", key, value);
    },
  },
];

describe.each(CLIENTS)("shared with $name", ({ tryTake, rounds }) => {
  const place = (): { key: string; name: string } => {
    const id = randomUUID();
    return { key: `mutex:${id}`, name: id };
  };

  test("a holder on either side keeps the other out until it releases", async () => {
    const { key, name } = place();
    const mutex = holdfast.mutex(name, { key, recheckMs: 20 });
    const lease = await mutex.acquire();
    expect(await tryTake(key)).toBeUndefined();
    expect(await lease.release()).toBe("released");
    const giveBack = await tryTake(key);
    expect(giveBack).toBeDefined();
    expect(await mutex.tryAcquire()).toBeNull();
    expect((await mutex.inspect()).holders).toMatchObject([{ owner: await redis.get(key), token: undefined }]);
    const waiting = [mutex.acquire({ waitMs: NEVER_MS }), mutex.acquire({ waitMs: NEVER_MS, fairness: "strict" })];
    await vi.waitFor(async () => expect((await mutex.inspect()).waiterCount).toBe(2), eventually);
    await giveBack?.();
    // Both waiters acquire in turn, although the foreign release sends no message.
    const first = await Promise.race(waiting);
    await first.release();
    for (const next of await Promise.all(waiting)) await next.release();
    expect(await redis.exists(key)).toBe(0);
  });

  test("a crashed holder's lock expires, on both sides", async () => {
    const { key, name } = place();
    const mutex = holdfast.mutex(name, { key });
    expect(await tryTake(key, 200)).toBeDefined();
    const lease = await mutex.acquire({ leaseMs: 150, renew: false, waitMs: NEVER_MS });
    // Simulates a crash: the lease is not released in time.
    expect(lease.token).toBeGreaterThan(0);
    let giveBack: Awaited<ReturnType<TryTake>>;
    await vi.waitFor(async () => {
      giveBack = await tryTake(key);
      expect(giveBack).toBeDefined();
    }, eventually);
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
    // The late release did not delete the lock of the next holder.
    expect(await redis.exists(key)).toBe(1);
    await giveBack?.();
    expect(await redis.exists(key)).toBe(0);
  });

  test("both sides never hold the lock together, and a guarded counter loses no update", async () => {
    const { key, name } = place();
    const counter = `${key}:counter`;
    const mutex = holdfast.mutex(name, { key, recheckMs: 10 });
    const add = async (): Promise<void> => void (await redis.set(counter, Number(await redis.get(counter)) + 1));
    const ours = async (): Promise<void> => {
      for (let i = 0; i < rounds; i += 1) await mutex.run(add, { waitMs: NEVER_MS });
    };
    const theirs = async (): Promise<void> => {
      for (let i = 0; i < rounds; ) {
        const giveBack = await tryTake(key);
        if (giveBack === undefined) continue;
        await add();
        await giveBack();
        i += 1;
      }
    };
    await Promise.all([ours(), ours(), theirs()]);
    expect(Number(await redis.get(counter))).toBe(3 * rounds);
  });
});

test.each<[LockOptions, number]>([
  [{ key: "a" }, 1_000],
  [{ key: "b", recheckMs: 40 }, 40],
  [{ recheckMs: 40 }, 40],
  [{}, 3_000],
])("a waiter of a mutex with %o sleeps for %d ms at most", async (options, mostMs) => {
  const redisOfItsOwn = new Redis({ port: server.port });
  const pauses: number[] = [];
  const watched = createHoldfastOn(
    {
      ...systemRuntime,
      random: () => 0,
      startTimer(callback, delayMs, keepAlive) {
        if (keepAlive && delayMs < NEVER_MS / 2) pauses.push(delayMs);
        return systemRuntime.startTimer(callback, delayMs, keepAlive);
      },
    },
    { redis: redisOfItsOwn },
  );
  const name = randomUUID();
  const mutex = watched.mutex(name, options);
  const key = options.key ?? `hf:mutex:{${name}}`;
  await redis.set(key, "somebody", "PX", NEVER_MS);
  const abort = new AbortController();
  const waiting = mutex.acquire({ waitMs: NEVER_MS, signal: abort.signal });
  await vi.waitFor(async () => expect((await mutex.inspect()).waiterCount).toBe(1), eventually);
  await vi.waitFor(() => expect(pauses).toContain(mostMs), eventually);
  expect(Math.max(...pauses.slice(pauses.indexOf(mostMs)))).toBe(mostMs);
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await watched.close();
  redisOfItsOwn.disconnect();
  await redis.del(key);
});

test("an invalid recheckMs is refused with an error that names it", () => {
  for (const recheckMs of [9, 5_001, 10.5]) {
    expect(() => holdfast.mutex("a", { recheckMs })).toThrow("recheckMs must be a whole number from 10 to 5000");
  }
  expect(() => holdfast.reentrantMutex("a", { recheckMs: "1" as never })).toThrow(TypeError);
});
