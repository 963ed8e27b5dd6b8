/** Dialects and lock options. Invalid ones are refused at the call with an error that names them. */
import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { clusterSlot } from "../../../holdfast/tests/unit/cluster-slot.js";
import {
  cppGetSet,
  type DeadlineDialect,
  ForeignValueError,
  javaGetSet,
  javaUuid,
  phpLua,
  phpSetGet,
  type TimestampDialect,
  type TimestampOptions,
  timestampLock,
} from "../../src/timestamp/index.js";
import { ownKeys } from "../../src/timestamp/protocol.js";

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});

const thrown = (make: () => unknown): Error => {
  try {
    make();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
};

test.each([phpSetGet, phpLua, javaGetSet, cppGetSet, javaUuid])(
  "a dialect is frozen, and a modified copy is used as given",
  (dialect) => {
    expect(Object.isFrozen(dialect)).toBe(true);
    const own: TimestampDialect = { ...dialect, prefix: "own:" };
    const lock = timestampLock(holdfast, "a", own);
    expect([lock.key, lock.name]).toEqual([`own:a${dialect.suffix}`, "a"]);
  },
);

const minutes: DeadlineDialect = {
  prefix: "job/",
  suffix: "/until",
  unit: "ms",
  leaseMs: 120_000,
  paddingMs: 0,
  takeoverWhen: "reached",
  mark: "none",
  losersWrite: false,
};

test("a custom dialect behaves as declared", async () => {
  const lock = timestampLock(holdfast, "nightly", minutes);
  const lease = await lock.acquire();
  const value = await redis.get("job/nightly/until");
  expect(value).toMatch(/^\d{13}$/);
  expect(Number(value)).toBeGreaterThan(Date.now() + minutes.leaseMs - 60_000);
  await lease.release();
  // A reached time is over because takeoverWhen is "reached".
  await redis.set(lock.key, Date.now());
  expect(await lock.tryAcquire()).not.toBeNull();
});

describe("a lock is refused", () => {
  test.each<[string, object, string, string]>([
    ["with an invalid unit", { unit: "m" }, "TypeError", 'dialect.unit must be "s", "ms" or "none"; got "m"'],
    [
      "without a prefix",
      { prefix: undefined },
      "TypeError",
      "dialect.prefix must be a string, empty if there is none; got undefined",
    ],
    [
      "with an invalid leaseMs",
      { leaseMs: 50 },
      "RangeError",
      "dialect.leaseMs must be a whole number from 100 to 31536000000; got 50",
    ],
    [
      "with an invalid paddingMs",
      { paddingMs: -1 },
      "RangeError",
      "dialect.paddingMs must be a whole number from 0 to 31536000000; got -1",
    ],
    [
      "with a padding that is not in whole seconds",
      { unit: "s", paddingMs: 1 },
      "RangeError",
      'dialect.paddingMs must be a multiple of 1000, because dialect.unit is "s"; got 1',
    ],
    [
      "with an invalid takeoverWhen",
      { takeoverWhen: "soon" },
      "TypeError",
      'dialect.takeoverWhen must be "reached" or "passed"; got "soon"',
    ],
    [
      "with an invalid mark",
      { mark: "x" },
      "TypeError",
      'dialect.mark must be "fraction", "leading-zero" or "none"; got "x"',
    ],
    [
      "with a fraction of milliseconds",
      { mark: "fraction" },
      "RangeError",
      'dialect.mark must be "leading-zero" or "none" for whole milliseconds; got "fraction"',
    ],
    [
      "with an invalid losersWrite",
      { losersWrite: "yes" },
      "TypeError",
      'dialect.losersWrite must be true or false; got "yes"',
    ],
    ["with an unknown field", { ttl: 1 }, "TypeError", "there is no field dialect.ttl"],
    [
      "with a field of another unit",
      { unit: "none" },
      "TypeError",
      'there is no field dialect.paddingMs; the fields of a dialect of unit "none" are prefix, suffix, unit, leaseMs',
    ],
  ])("%s", (_what, change, name, message) => {
    const error = thrown(() => timestampLock(holdfast, "a", { ...minutes, ...change } as TimestampDialect));
    expect(error.name).toBe(name);
    expect(error.message).toContain(message);
  });

  test("without a dialect", () => {
    expect(thrown(() => timestampLock(holdfast, "a", undefined as never)).message).toContain("dialect must be");
  });
});

describe("a lock is refused with an invalid option", () => {
  test.each<[TimestampOptions | object, string]>([
    [{ maxClockSkewMs: 999 }, "maxClockSkewMs must be a whole number from 1000 to 86400000; got 999"],
    [{ takeoverMarginMs: -1 }, "takeoverMarginMs must be a whole number from 0 to 86400000; got -1"],
    [{ attempts: 0 }, "attempts must be a whole number from 1 to 1000000000 or Infinity; got 0"],
    [{ retryDelayMs: 5 }, "retryDelayMs must be a whole number from 10 to 60000; got 5"],
    [{ retryDelayMs: 50, retryJitterMs: 51 }, "retryJitterMs must be a whole number from 0 to 50; got 51"],
    [{ leaseMs: 1 }, "leaseMs must be a whole number from 100 to 31536000000; got 1"],
    [{ wake: 1 }, "wake must be true or false; got 1"],
    [{ overwritten: "keep" }, 'overwritten must be "leave" or "delete"; got "keep"'],
    [{ waitMs: 5 }, 'there is no option "waitMs"; the options are leaseMs, maxClockSkewMs'],
  ])("%o", (options, message) => {
    expect(thrown(() => timestampLock(holdfast, "a", phpLua, options as TimestampOptions)).message).toContain(message);
  });

  test("an invalid name, an object that is not a Holdfast, and a quorum are refused as well", async () => {
    expect(thrown(() => timestampLock(holdfast, "a}b", phpLua))).toBeInstanceOf(RangeError);
    expect(thrown(() => timestampLock(holdfast, "", phpLua))).toBeInstanceOf(RangeError);
    expect(thrown(() => timestampLock({} as Holdfast, "a", phpLua)).message).toContain("the result of createHoldfast");
    const clients = [1, 2, 3].map(() => new Redis({ port: server.port, lazyConnect: true }));
    const quorum = createHoldfast({ redlock: clients });
    expect(thrown(() => timestampLock(quorum, "a", phpLua))).toBeInstanceOf(UnsupportedError);
    await quorum.close();
    for (const client of clients) client.disconnect();
  });
});

const BRACES = ["a", "{a}", "{a}b", "a{b", "a{", "{", "x{tag}y", "a{b{c}", "{a}}", "lock.foo", "{{a}", "a{b}c{d}"];

test.each(BRACES)("the keys of %j are in one slot of a cluster", (key) => {
  expect(timestampLock(holdfast, key, phpLua).key).toBe(key);
  const { record, fence } = ownKeys(key);
  expect([clusterSlot(record), clusterSlot(fence)]).toEqual([clusterSlot(key), clusterSlot(key)]);
});

test.each(["a}b", "{}x", "}{", "}", "a{}b", "{}", "a}{b}", "{}{a}"])("the key %j is refused at the call", (key) => {
  // No hash tag could put the record and the fence of such a key in the slot of the key.
  const error = thrown(() => timestampLock(holdfast, key, phpLua));
  expect(error).toBeInstanceOf(RangeError);
  expect(error.message).toContain(`the first "}" in key must close a hash tag such as {a}; got ${JSON.stringify(key)}`);
});

test("two keys never share a record or a fence, and their locks can be held simultaneously", async () => {
  const beside = BRACES.flatMap((key) => Object.values(ownKeys(key)));
  expect(new Set(beside).size).toBe(beside.length);
  const plain = timestampLock(holdfast, "side", javaUuid);
  const tagged = timestampLock(holdfast, "{side}", javaUuid);
  const first = await plain.acquire();
  const second = await tagged.acquire({ waitMs: 1_000 });
  expect((await plain.inspect()).holders).toMatchObject([{ owner: first.owner, token: first.token }]);
  expect((await tagged.inspect()).holders).toMatchObject([{ owner: second.owner, token: second.token }]);
  expect(await first.release()).toBe("released");
  expect((await tagged.inspect()).holders).toHaveLength(1);
  expect(await second.release()).toBe("released");
});

test("timestamp locks work on the embedded store", async () => {
  const own = createHoldfast({ store: embedded() });
  for (const dialect of [phpSetGet, phpLua, javaGetSet, cppGetSet, javaUuid]) {
    const lock = timestampLock(own, "embedded", dialect);
    const lease = await lock.acquire();
    expect(await lock.tryAcquire()).toBeNull();
    await lease.extend(2 * dialect.leaseMs);
    expect((await lock.inspect()).holders).toMatchObject([{ owner: lease.owner, token: lease.token }]);
    expect(await lease.release()).toBe("released");
    const next = await lock.acquire();
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await lock.forceRelease({ token: next.token })).toBe(true);
    await expect(next.release()).rejects.toThrow("force-released");
  }
  await own.close();
});

test("the record of a client with another unit blocks no other client once its lock is gone", async () => {
  const seconds: TimestampDialect = { ...minutes, unit: "s", prefix: "mixed/" };
  await timestampLock(holdfast, "a", { ...minutes, prefix: "mixed/" }).acquire({ renew: false });
  await expect(timestampLock(holdfast, "a", seconds).acquire()).rejects.toBeInstanceOf(ForeignValueError);
  await redis.del("mixed/a/until");
  await (await timestampLock(holdfast, "a", seconds).acquire()).release();
});

test("a timestamp lease cannot be exported to another process", async () => {
  const lease = await timestampLock(holdfast, "moving", phpLua).acquire();
  expect(() => lease.export()).toThrow(UnsupportedError);
  await lease.release();
});

test("a timestamp lock can be a member of a multi-lock, together with a Holdfast mutex", async () => {
  const shared = timestampLock(holdfast, "part", javaGetSet);
  const both = holdfast.multiLock([shared, "own"]);
  const lease = await both.acquire();
  expect(await redis.exists("part_lock", "hf:mutex:{own}")).toBe(2);
  await lease.release();
  expect(await redis.exists("part_lock", "hf:mutex:{own}")).toBe(0);
});

test("takeoverMarginMs delays the takeover of an expired lock", async () => {
  const lock = timestampLock(holdfast, "margin", javaGetSet, { takeoverMarginMs: 60_000, wake: false });
  await redis.set(lock.key, Date.now() - 30_000);
  expect(await lock.tryAcquire()).toBeNull();
  expect((await lock.inspect()).holders).toHaveLength(1);
  await redis.set(lock.key, Date.now() - 90_000);
  expect(await lock.tryAcquire()).not.toBeNull();
});
