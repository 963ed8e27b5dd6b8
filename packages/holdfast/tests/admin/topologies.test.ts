/** Surveys, lookups and history on several servers: a cluster with each client library, and a quorum. */
import { randomUUID } from "node:crypto";
import { GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import {
  clients,
  findDeadlocks,
  lookUp,
  readHistory,
  recordHistory,
  survey,
  surveyAll,
} from "../../src/admin/index.js";
import { createHoldfast, type Holdfast, StoreError } from "../../src/index.js";
import { lastRunOf, serverTimeMs, startOfPeriod } from "../../src/period-marker/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS } from "../../src/testing/delays.js";

Logger.setLoggerConfig("off");
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe("in a cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  type Connect = () => Promise<{
    readonly redis: object;
    readonly subscriber?: () => Promise<object>;
    close(): unknown;
  }>;
  const hosts = (): { host: string; port: number }[] => cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
  const libraries: Readonly<Record<string, Connect>> = {
    async ioredis() {
      const redis = new Cluster(hosts());
      redis.on("error", () => {});
      return { redis, close: () => redis.disconnect() };
    },
    async "ioredis with a key prefix"() {
      const redis = new Cluster(hosts(), { keyPrefix: "{app*}:" });
      redis.on("error", () => {});
      return { redis, close: () => redis.disconnect() };
    },
    async "node-redis"() {
      const redis = createCluster({ rootNodes: hosts().map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) });
      redis.on("error", () => {});
      await redis.connect();
      return { redis, close: () => redis.destroy() };
    },
    async GLIDE() {
      const connect = (): Promise<GlideClusterClient> =>
        GlideClusterClient.createClient({ addresses: hosts(), requestTimeout: 5_000 });
      const redis = await connect();
      return { redis, subscriber: connect, close: () => redis.close() };
    },
  };

  test.each(Object.keys(libraries))("locks of all masters are listed once, in pages too: %s", async (library) => {
    const { redis, subscriber, close } = await (libraries[library] as Connect)();
    const holdfast = createHoldfast({
      redis,
      prefix: randomUUID(),
      // Every client checks a new cluster first, which takes a while on a busy machine.
      failoverGrace: "off",
      commandTimeoutMs: LONG_MS,
      ...(subscriber && { subscriber }),
    });
    try {
      const names = Array.from({ length: 60 }, (_, i) => `job:${i}`);
      await Promise.all(names.map((name) => holdfast.mutex(name).acquire()));
      const { locks, isComplete, unreachable } = await surveyAll(holdfast);
      expect(locks.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
      expect({ isComplete, unreachable }).toEqual({ isComplete: true, unreachable: 0 });
      const listed: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await survey(holdfast, { limit: 20, ...(cursor !== undefined && { cursor }) });
        listed.push(...page.locks.map(({ name }) => name));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(listed.toSorted()).toEqual(names.toSorted());
      expect((await lookUp(holdfast, "job:7")).map(({ kind, state }) => `${kind} ${state}`)).toEqual(["mutex held"]);

      const recorder = recordHistory(holdfast);
      await Promise.all(["a", "b", "c", "d"].map((name) => holdfast.mutex(name).run(() => {})));
      await recorder.stop();
      expect((await readHistory(holdfast)).map(({ name }) => name).toSorted()).toEqual(["a", "b", "c", "d"]);
      const [client, ...more] = await clients(holdfast);
      expect(more).toEqual([]);
      expect(client?.held).toHaveLength(60);

      const readAtMs = await serverTimeMs(holdfast, "nightly");
      expect(Math.abs(readAtMs - Date.now())).toBeLessThan(LONG_MS);
      const lease = await holdfast.mutex("nightly").acquire();
      expect(await startOfPeriod(holdfast, lease, { every: "day", readAtMs })).toMatchObject({ outcome: "started" });
      const key = "legacy";
      const mapped = await holdfast.mutex("nightly", { key }).acquire();
      expect(await startOfPeriod(holdfast, mapped, { every: "day", readAtMs, key })).toMatchObject({
        outcome: "started",
      });
    } finally {
      await holdfast.close();
      close();
    }
  });
});

test("if no server of a quorum replies, lists reject instead of being empty", async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const redises = servers.map(({ port }) => new Redis(port, { maxRetriesPerRequest: 0, retryStrategy: () => 50 }));
  for (const redis of redises) redis.on("error", () => {});
  const holdfast = createHoldfast({ redlock: redises, prefix: randomUUID(), commandTimeoutMs: LONG_MS });
  try {
    expect(await surveyAll(holdfast)).toMatchObject({ locks: [], unreachable: 0 });
    await Promise.all(servers.map((server) => server.kill()));
    for (const list of [surveyAll, survey, clients, findDeadlocks])
      await expect(list(holdfast)).rejects.toThrow(StoreError);
  } finally {
    await holdfast.close();
    for (const redis of redises) redis.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  }
});

describe("on three servers of a quorum", () => {
  let servers: readonly RedisServer[];
  let redises: readonly Redis[];
  let holdfast: Holdfast;
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    redises = servers.map(({ port }) => {
      const redis = new Redis(port, { maxRetriesPerRequest: 0, retryStrategy: () => 50 });
      redis.on("error", () => {});
      return redis;
    });
    holdfast = createHoldfast({
      // Passed as stores because Holdfast would exclude a just-started server for a while.
      redlock: redises.map((redis) => storeFor(redis)),
      prefix: randomUUID(),
      clientName: "voter",
      commandTimeoutMs: LONG_MS,
    });
  });
  afterAll(async () => {
    await holdfast?.close();
    for (const redis of redises ?? []) redis.disconnect();
    await Promise.all((servers ?? []).map((server) => server.stop()));
  });

  test("a lock held on a majority is listed once, even if one server is unreachable, which is reported", async () => {
    const recorder = recordHistory(holdfast);
    const lease = await holdfast.redlock("ledger").acquire({ label: "books" });
    await holdfast
      .redlock("short")
      .acquire()
      .then((other) => other.release());
    await recorder.flush();
    const whole = await surveyAll(holdfast);
    expect(whole.unreachable).toBe(0);
    expect(whole.locks).toMatchObject([
      {
        kind: "redlock",
        name: "ledger",
        state: "held",
        token: lease.token,
        label: "books",
        holders: [{ clientName: "voter" }],
      },
    ]);
    expect((await lookUp(holdfast, "ledger")).map(({ kind }) => kind)).toEqual(["redlock"]);

    const readAtMs = await serverTimeMs(holdfast, "ledger");
    const options = { every: 60_000, readAtMs } as const;
    const started = await startOfPeriod(holdfast, lease, options);
    if (started.outcome !== "started") throw new Error("nobody had started");
    expect(await started.end(0)).toBe(true);

    await servers[0]?.kill();
    const part = await surveyAll(holdfast);
    expect(part.locks.map(({ name }) => name)).toEqual(["ledger"]);
    expect(part).toMatchObject({ unreachable: 1, isComplete: true });
    expect((await readHistory(holdfast)).map(({ name, outcome }) => `${name} ${outcome}`).toSorted()).toEqual([
      "ledger held",
      "short released",
    ]);
    await lease.release();
    const next = await holdfast.redlock("ledger").acquire();
    expect(await startOfPeriod(holdfast, next, { ...options, readAtMs: readAtMs + 1_000 })).toMatchObject({
      outcome: "already",
      lastRun: { owner: lease.owner, exitCode: 0, readAtMs },
    });
    expect(await lastRunOf(holdfast, "ledger")).toMatchObject({ token: lease.token });
    expect((await clients(holdfast)).map(({ clientName, held }) => ({ clientName, held: held.length }))).toEqual([
      { clientName: "voter", held: 1 },
    ]);
    await recorder.stop();
  });
});
