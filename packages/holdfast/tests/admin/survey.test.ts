/** Surveys of all locks with a prefix, with every client library: each lock is listed once, with its details. */
import { randomUUID } from "node:crypto";
import { embedded } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import {
  clients,
  LOCK_KINDS,
  type LockEntry,
  lookUp,
  lookUpConditions,
  survey,
  surveyAll,
} from "../../src/admin/index.js";
import { VERSION } from "../../src/client-record/client-record.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { ROWS } from "../stores/rows.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

interface Side {
  readonly holdfast: Holdfast;
  readonly close: () => Promise<unknown>;
}

type Open = (prefix: string) => Promise<Side>;

const SIDES: readonly (readonly [name: string, open: Open])[] = [
  [
    "embedded",
    async (prefix) => {
      const holdfast = createHoldfast({ store: embedded({ keyPrefix: "app[1]:" }), prefix, clientName: "tester" });
      return { holdfast, close: () => holdfast.close() };
    },
  ],
  ...ROWS.map((row): readonly [string, Open] => [
    row.name,
    async (prefix) => {
      const redis = await row.connect(server.port);
      const subscriber = row.subscriber(server.port);
      const holdfast = createHoldfast({ redis, prefix, clientName: "tester", ...(subscriber && { subscriber }) });
      return {
        holdfast,
        close: async () => {
          await holdfast.close();
          await row.disconnect(redis);
        },
      };
    },
  ]),
];

function found(locks: readonly LockEntry[], kind: string, name: string): LockEntry {
  const [lock, ...more] = locks.filter((one) => one.kind === kind && one.name === name);
  if (lock === undefined || more.length > 0)
    throw new Error(`${kind} ${name} is listed ${more.length} times too often`);
  return lock;
}

describe.each(SIDES)("%s", (_, open) => {
  test("every kind in use is listed once, with its holders, waiters and counts", async () => {
    // Pattern characters in the prefix must be taken literally.
    const { holdfast, close } = await open(`hf*[${randomUUID().slice(0, 8)}]?`);
    try {
      const mutex = await holdfast.mutex("a}b").acquire({ label: "release 4.2" });
      await holdfast.mutex("%{x").acquire();
      await holdfast.mutex("of others", { key: "app:{42}:lock" }).acquire();
      await holdfast.semaphore("pool", { permits: 5 }).acquire({ permits: 2 });
      await holdfast.semaphore("pool", { permits: 5 }).acquire();
      const reader = await holdfast.readWriteLock("catalog").read.acquire();
      const leadership = await holdfast.election("boss").campaign("10.0.0.1");
      await holdfast.countDownLatch("ready").trySetCount(3);
      const arrival = holdfast.barrier("start", { parties: 2 }).arrive();
      arrival.catch(() => {});
      const waiting = holdfast.mutex("a}b").acquire({ label: "next", fairness: "strict" });
      waiting.catch(() => {});
      await holdfast
        .mutex("free")
        .acquire()
        .then((lease) => lease.release());
      await until(async () => (await holdfast.mutex("a}b").inspect()).waiterCount === 1, "a waiter");
      await until(
        async () => (await holdfast.barrier("start", { parties: 2 }).inspect()).arrived.length > 0,
        "an arrival",
      );

      const { locks, isComplete, unreachable } = await surveyAll(holdfast);
      expect({ isComplete, unreachable }).toEqual({ isComplete: true, unreachable: 0 });
      expect(locks.map(({ kind, name, state }) => `${kind} ${name} ${state}`).sort()).toEqual([
        "barrier start gathering",
        "count-down-latch ready counting",
        "election boss held",
        "mutex %{x held",
        "mutex app:{42}:lock held",
        "mutex a}b held",
        "read-write-lock catalog held",
        "semaphore pool held",
      ]);
      expect(found(locks, "mutex", "a}b")).toMatchObject({
        mode: "exclusive",
        token: mutex.token,
        label: "release 4.2",
        holders: [{ owner: mutex.owner, token: mutex.token, pid: process.pid, clientName: "tester" }],
        waiterCount: 1,
        waiters: [{ label: "next", pid: process.pid, sinceAtMs: expect.any(Number) }],
      });
      const { sinceAtMs = 0 } = found(locks, "mutex", "a}b").waiters[0] ?? {};
      expect(Math.abs(sinceAtMs - Date.now())).toBeLessThan(LONG_MS);
      expect(found(locks, "mutex", "app:{42}:lock")).toMatchObject({ key: "app:{42}:lock" });
      const pool = found(locks, "semaphore", "pool");
      expect(pool.permits).toEqual({ limit: 5, used: 3 });
      expect(pool.holders.map(({ permits, slots }) => ({ permits, slots }))).toEqual([
        { permits: 2, slots: [0, 1] },
        { permits: 1, slots: [2] },
      ]);
      expect(found(locks, "read-write-lock", "catalog")).toMatchObject({
        mode: "shared",
        holders: [{ token: reader.token, permits: 1 }],
      });
      expect(found(locks, "election", "boss").leader).toEqual({ value: "10.0.0.1", term: leadership.term });
      expect(found(locks, "count-down-latch", "ready").count).toEqual({ left: 3, initial: 3 });
      expect(found(locks, "barrier", "start").barrier).toEqual({ parties: 2, generation: 1, broken: undefined });
    } finally {
      await close();
    }
  });
});

describe("on one server", () => {
  let redis: Redis;
  let holdfast: Holdfast;
  beforeAll(() => {
    redis = new Redis(server.port);
    holdfast = createHoldfast({ redis, prefix: randomUUID() });
  });
  afterAll(async () => {
    await holdfast.close();
    redis.disconnect();
  });

  test("a mutex with waiting conditions is listed once, with all of its conditions", async () => {
    const mutex = holdfast.mutex("stock");
    const stop = new AbortController();
    const waits = ["full", "empty: 100 %"].map(async (name) => {
      const lease = await mutex.acquire({ fairness: "strict" });
      await mutex.condition(name).wait(lease, { signal: stop.signal });
    });
    for (const wait of waits) wait.catch(() => {});
    await until(async () => {
      const { locks } = await surveyAll(holdfast, { pattern: "stock" });
      return locks[0]?.conditions.length === 2;
    }, "both conditions");
    const { locks } = await surveyAll(holdfast, { pattern: "stock" });
    expect(locks.map(({ name, state }) => ({ name, state }))).toEqual([{ name: "stock", state: "awaited" }]);
    expect(locks[0]?.conditions.map(({ name, waiterCount }) => ({ name, waiterCount }))).toEqual(
      expect.arrayContaining([
        { name: "full", waiterCount: 1 },
        { name: "empty: 100 %", waiterCount: 1 },
      ]),
    );
    const { locks: looked, ...extent } = await lookUpConditions(holdfast, "stock");
    expect(extent).toEqual({ isComplete: true, unreachable: 0 });
    expect(looked.map(({ kind, state }) => ({ kind, state }))).toEqual([{ kind: "mutex", state: "awaited" }]);
    expect(looked[0]?.conditions.map(({ name }) => name).toSorted()).toEqual(["empty: 100 %", "full"]);
    // Conditions are found by SCAN, which `lookUp` does not use.
    expect(await lookUp(holdfast, "stock")).toEqual([]);
    expect((await lookUpConditions(holdfast, "stoc?")).locks).toEqual([]);
    stop.abort();
    await Promise.allSettled(waits);
  });

  test("the pages of a survey list each of a thousand locks once and none of other prefixes", async () => {
    const own = createHoldfast({ redis, prefix: `many-${randomUUID()}` });
    const other = createHoldfast({ redis, prefix: `other-${randomUUID()}` });
    const names = Array.from({ length: 1_000 }, (_, i) => `job:${i}`);
    await Promise.all(names.map((name) => own.mutex(name).acquire({ renew: false, leaseMs: 600_000 })));
    await other.mutex("job:0").acquire();
    const listed: string[] = [];
    const sizes: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await survey(own, { limit: 100, ...(cursor !== undefined && { cursor }) });
      listed.push(...page.locks.map(({ name }) => name));
      sizes.push(page.locks.length);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(listed.toSorted()).toEqual(names.toSorted());
    expect(Math.max(...sizes)).toBeLessThan(150);
    expect(sizes.length).toBeGreaterThan(6);
    await Promise.all([own.close(), other.close()]);
  });

  test("a survey filters by pattern, kind and holder, and lists free locks only on request", async () => {
    await holdfast.mutex("order:1").acquire({ label: "import" });
    await holdfast.mutex("order:2").acquire();
    await holdfast.semaphore("order:1", { permits: 2 }).acquire();
    await holdfast
      .mutex("order:3")
      .acquire()
      .then((lease) => lease.release());
    const listed = async (options: Parameters<typeof surveyAll>[1]): Promise<string[]> =>
      (await surveyAll(holdfast, options)).locks.map(({ kind, name }) => `${kind} ${name}`).sort();
    expect(await listed({ pattern: "order:[12]" })).toEqual(["mutex order:1", "mutex order:2", "semaphore order:1"]);
    expect(await listed({ pattern: "order:*", kinds: ["semaphore"] })).toEqual(["semaphore order:1"]);
    expect(await listed({ pattern: "order:*", holder: "import" })).toEqual(["mutex order:1"]);
    expect(await listed({ pattern: "order:3" })).toEqual([]);
    expect(await listed({ pattern: "order:3", includeFree: true })).toEqual(["mutex order:3"]);
    expect(await listed({ pattern: "order:?", includeFree: true })).toEqual([
      "mutex order:1",
      "mutex order:2",
      "mutex order:3",
      "semaphore order:1",
    ]);
  });

  test("a lookup finds every kind that a name is used as", async () => {
    expect(await lookUp(holdfast, "both")).toEqual([]);
    await holdfast.mutex("both").acquire();
    const write = await holdfast.readWriteLock("both").write.acquire();
    const looked = await lookUp(holdfast, "both");
    expect(looked.map(({ kind, mode }) => ({ kind, mode }))).toEqual([
      { kind: "mutex", mode: "exclusive" },
      { kind: "read-write-lock", mode: "exclusive" },
    ]);
    expect(looked[1]?.token).toBe(write.token);
    const all = await lookUp(holdfast, "both", { includeFree: true });
    expect(all.map(({ kind }) => kind)).toEqual(LOCK_KINDS.filter((kind) => kind !== "redlock"));
  });

  test("invalid options are refused with an error that names them", async () => {
    await expect(survey(holdfast, { limit: 0 })).rejects.toThrow(/limit/);
    await expect(survey(holdfast, { cursor: "x" })).rejects.toThrow(/cursor must be the nextCursor/);
    await expect(survey(holdfast, { kinds: ["lock" as never] })).rejects.toThrow(/kinds must be/);
    await expect(survey(holdfast, { pattern: 1 as never })).rejects.toThrow(/pattern must be/);
    await expect(survey(holdfast, { patern: "x" } as never)).rejects.toThrow(/no option "patern"/);
    await expect(survey({} as never)).rejects.toThrow(/createHoldfast/);
    await expect(lookUp(holdfast, "")).rejects.toThrow(/name must be/);
  });
});

test("clients are listed with what they hold and wait for, and a crashed client shows as silent", async () => {
  const redis = new Redis(server.port);
  const prefix = randomUUID();
  const startedAtMs = Date.now();
  const [one, other] = ["one", "other"].map((clientName) => createHoldfast({ redis, prefix, clientName })) as [
    Holdfast,
    Holdfast,
  ];
  await one.mutex("a").acquire();
  const pool = await one.semaphore("pool", { permits: 2 }).acquire();
  const waiting = other.mutex("a").acquire({ label: "next" });
  waiting.catch(() => {});
  await until(async () => (await one.mutex("a").inspect()).waiterCount === 1, "a waiter");
  const listed = (await clients(one)).toSorted((a, b) => (a.clientName ?? "").localeCompare(b.clientName ?? ""));
  expect(listed).toMatchObject([
    {
      clientName: "one",
      pid: process.pid,
      version: VERSION,
      protocol: 1,
      isHeardOf: true,
      waits: [],
    },
    { clientName: "other", held: [], waits: [{ kind: "mutex", name: "a", token: undefined }] },
  ]);
  expect(listed[0]?.held.map(({ kind, name }) => `${kind} ${name}`).toSorted()).toEqual(["mutex a", "semaphore pool"]);
  expect(listed[0]?.held.find(({ name }) => name === "pool")?.token).toBe(pool.token);
  expect(Math.abs((listed[0]?.lastSeenAtMs ?? 0) - Date.now())).toBeLessThan(LONG_MS);
  const { clientId = "", sinceAtMs = 0 } = listed[0] ?? {};
  expect(sinceAtMs).toBeGreaterThanOrEqual(startedAtMs - 10);
  expect(sinceAtMs).toBeLessThanOrEqual(listed[0]?.lastSeenAtMs ?? 0);
  await redis.hset(`${prefix}:client:${clientId}`, "seen", (Date.now() - 70_000) * 1_000);
  expect((await clients(other)).find((client) => client.clientId === clientId)).toMatchObject({ isHeardOf: false });
  await redis.del(`${prefix}:client:${clientId}`);
  expect((await clients(other)).find((client) => client.clientId === clientId)).toMatchObject({
    host: undefined,
    sinceAtMs: undefined,
    lastSeenAtMs: undefined,
    isHeardOf: false,
  });
  expect((await clients(other, { locks: [] })).map(({ held }) => held)).toEqual([[]]);
  await Promise.all([one.close(), other.close()]);
  redis.disconnect();
});

test("a free lock of any kind is listed while it is paused, even before its first use", async () => {
  const redis = new Redis(server.port);
  const holdfast = createHoldfast({ redis, prefix: randomUUID() });
  const options = { label: "db maintenance", by: "ana@ops-1" };
  await holdfast.semaphore("used", { permits: 2 }).run(() => {});
  await Promise.all([
    holdfast.pause("a", options),
    holdfast.pause("b", { ...options, kind: "semaphore" }),
    holdfast.pause("c", { ...options, kind: "read-write-lock" }),
    holdfast.pause("d", { ...options, kind: "election" }),
    holdfast.pause("e", { ...options, key: `legacy:${randomUUID()}` }),
    holdfast.pause("used", { ...options, kind: "semaphore" }),
  ]);
  const { locks } = await surveyAll(holdfast);
  expect(
    locks.map(({ kind, key, state }) => `${kind}${key === undefined ? "" : " with a key"} ${state}`).toSorted(),
  ).toEqual(
    ["election", "mutex", "mutex with a key", "read-write-lock", "semaphore", "semaphore"].map(
      (one) => `${one} paused`,
    ),
  );
  await holdfast.close();
  redis.disconnect();
});

test("a paused lock is listed with who paused it and why, held or not", async () => {
  const redis = new Redis(server.port);
  const holdfast = createHoldfast({ redis, prefix: randomUUID() });
  const lease = await holdfast.mutex("deploy").acquire({ label: "release" });
  await holdfast.pause("deploy", { label: "db maintenance", by: "ana@ops-1" });
  const pause = { by: "ana@ops-1", label: "db maintenance" };
  const expected = { state: "paused", label: "db maintenance", pause, waiterCount: 0 };
  expect((await surveyAll(holdfast)).locks).toMatchObject([{ ...expected, holders: [{ token: lease.token }] }]);
  await lease.release();
  expect((await surveyAll(holdfast)).locks).toMatchObject([{ ...expected, holders: [] }]);
  expect(await lookUp(holdfast, "deploy")).toMatchObject([{ ...expected, kind: "mutex" }]);
  await holdfast.resume("deploy", { by: "ana@ops-1" });
  expect((await surveyAll(holdfast)).locks).toEqual([]);
  await holdfast.close();
  redis.disconnect();
});
