/** Scheduled jobs when the connection or the server fails. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { runCoordinator } from "@holdfast/node-cron";
import { createHoldfast, type Holdfast } from "holdfast";
import { readHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../tests/support/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../../../tests/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { periodMarkerEnd, periodMarkerRead, periodMarkerStart } from "../../holdfast/src/generated/period-marker.js";
import { mutexAcquire, mutexExtend, mutexRelease } from "../../holdfast/src/generated/scripts.js";
import { deferred, sleep, until, withLeaseInTime } from "../../holdfast/src/testing/delays.js";
import { replicated } from "../../holdfast/tests/faults/replicated.js";
import { clusters, sentinels, useClients } from "../../holdfast/tests/faults/topology-scene.js";
import { scheduled, WorkLostError } from "../src/index.js";

const HOUR_MS = 3_600_000;
const every = { everyMs: HOUR_MS };
let server: RedisServer;
let redis: Redis;
let other: Holdfast;
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  other = createHoldfast({ redis });
});

afterAll(async () => {
  await other?.close();
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
});

async function behindProxy(
  options: { readonly autoResendUnfulfilledCommands?: false; readonly enableOfflineQueue?: false } = {},
  commandTimeoutMs = 20_000,
): Promise<{ proxy: TcpProxy; local: Holdfast }> {
  const proxy = await startProxy(server.port);
  const client = new Redis({ port: proxy.port, retryStrategy: () => 20, ...options });
  client.on("error", () => {});
  if (options.enableOfflineQueue === false) await once(client, "ready");
  const local = createHoldfast({ redis: client, commandTimeoutMs });
  // Loads the scripts and opens the inbox.
  await scheduled(local, `${name}:warm`, () => {}, every)();
  onTestFinished(async () => {
    await local.close();
    client.disconnect();
    await proxy.close();
  });
  return { proxy, local };
}

describe("a lost reply of a script that ran", () => {
  test.each([
    ["look", periodMarkerRead],
    ["acquire", mutexAcquire],
    ["marker", periodMarkerStart],
    ["release", mutexRelease],
    ["record of the end", periodMarkerEnd],
  ])("%s: the job runs once, and the lock is free", async (_, { sha1 }) => {
    const { proxy, local } = await behindProxy();
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${sha1}`, "i"));
    const work = vi.fn(() => "value");
    expect(await scheduled(local, name, work, every)()).toEqual({ outcome: "ran", value: "value" });
    await struck;
    expect(work).toHaveBeenCalledTimes(1);
    expect(await scheduled(other, name, work, every)()).toMatchObject({ reason: "already-done" });
    expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0);
  });
});

test("a client that does not resend requests runs once, because Holdfast retries and finds the marker", async () => {
  const { proxy, local } = await behindProxy({ autoResendUnfulfilledCommands: false }, 2_000);
  const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${periodMarkerStart.sha1}`, "i"));
  const work = vi.fn(() => "value");
  expect(await scheduled(local, name, work, every)()).toEqual({ outcome: "ran", value: "value" });
  await struck;
  expect(await scheduled(other, name, work, every)()).toMatchObject({ reason: "already-done" });
});

test("a duplicated marker request counts once", async () => {
  const { proxy, local } = await behindProxy();
  const struck = proxy.duplicate(new RegExp(`^evalsha ${periodMarkerStart.sha1}`, "i"));
  const work = vi.fn();
  await scheduled(local, name, work, every)();
  await struck;
  expect(work).toHaveBeenCalledTimes(1);
});

test("a caller that waits for a holder without a marker runs although all messages are lost", async () => {
  const { proxy, local } = await behindProxy();
  const lease = await other.mutex(name).acquire();
  proxy.dropMessages(true);
  const { requests } = proxy.counts;
  const call = scheduled(local, name, () => "value", every)();
  // The call has read the marker, requested the lock, seen its holder, and now re-checks.
  await until(() => proxy.counts.requests > requests + 4, "a refused attempt");
  await lease.release();
  expect(await call).toEqual({ outcome: "ran", value: "value" });
});

test.each([
  ["look", periodMarkerRead],
  ["acquire", mutexAcquire],
])("a caller that gives up before the reply to the %s leaves no marker and no lock", async (_, { sha1 }) => {
  const { proxy, local } = await behindProxy();
  const controller = new AbortController();
  const why = new Error("shutting down");
  const request = proxy.hold(new RegExp(`^evalsha ${sha1}`, "i"));
  const work = vi.fn();
  const call = scheduled(local, name, work, { ...every, signal: controller.signal })();
  call.catch(() => {});
  await request.reached;
  controller.abort(why);
  request.release();
  await expect(call).rejects.toBe(why);
  expect(work).not.toHaveBeenCalled();
  await vi.waitFor(async () => expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0), { timeout: 15_000 });
  expect(await scheduled(other, name, () => {}, every)()).toMatchObject({ outcome: "ran" });
});

test("a server that restarts empty makes the run fail with a WorkLostError, and the next call runs", async () => {
  const own = await startRedis();
  const client = new Redis({ port: own.port, retryStrategy: () => 20 });
  client.on("error", () => {});
  const local = createHoldfast({ redis: client });
  onTestFinished(async () => {
    await local.close();
    client.disconnect();
    await own.stop();
  });
  const [began, ended] = [deferred<void>(), deferred<string>()];
  const work = (): Promise<string> => {
    began.resolve();
    return ended.promise;
  };
  const first = scheduled(local, name, work, every)();
  await began.promise;
  await own.restart();
  ended.resolve("late");
  const lost = await first.catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(WorkLostError);
  expect(lost).toMatchObject({ value: "late", reason: "server-lost" });
  expect(await scheduled(local, name, () => "again", every)()).toMatchObject({ outcome: "ran" });
});

test("a caller that receives its tick after its lease expired does not start work", async () => {
  const { proxy, local } = await behindProxy();
  const answer = proxy.holdReply(new RegExp(`^evalsha ${periodMarkerStart.sha1}`, "i"));
  const work = vi.fn();
  const call = scheduled(local, name, work, { ...every, leaseMs: 4_000 })();
  // If the machine freezes for that long, the call ends before it reaches this request.
  await Promise.race([answer.reached, call]);
  await vi.waitFor(async () => expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0), { timeout: 15_000 });
  answer.release();
  expect(await call).toMatchObject({ outcome: "refused", reason: "unavailable" });
  expect(work).not.toHaveBeenCalled();
});

test("a run that ends while its Holdfast closes is recorded in the history before close resolves", async () => {
  const { proxy, local } = await behindProxy();
  const [began, ended] = [deferred<void>(), deferred<string>()];
  const work = (): Promise<string> => {
    began.resolve();
    return ended.promise;
  };
  const running = scheduled(local, name, work, { ...every, history: true })();
  await began.promise;
  await vi.waitFor(async () => expect(await readHistory(other, { name })).toMatchObject([{ outcome: "held" }]), {
    timeout: 15_000,
  });
  const note = proxy.holdReply(new RegExp(`^evalsha ${periodMarkerEnd.sha1}`, "i"));
  const closing = local.close({ graceMs: 60_000 });
  ended.resolve("value");
  expect((await closing).released).toHaveLength(1);
  await note.reached;
  // Requests that were already sent arrive, and later ones do not.
  proxy.refuse(true);
  proxy.cutAll();
  note.release();
  expect(await running).toEqual({ outcome: "ran", value: "value" });
  expect(await readHistory(other, { name })).toMatchObject([{ outcome: "released" }]);
});

describe("`minHoldMs` on a server that does not reply after the work", { timeout: 120_000 }, () => {
  const isFree = async (): Promise<void> => {
    await vi.waitFor(async () => expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0), { timeout: 60_000 });
  };

  test("causes no loss, because the work ended within its lease", () =>
    withLeaseInTime(async (leaseMs) => {
      name = randomUUID();
      const { proxy, local } = await behindProxy();
      const request = proxy.hold(new RegExp(`^evalsha ${mutexExtend.sha1} .* ${HOUR_MS}`, "i"));
      const ran = scheduled(local, name, () => "value", { ...every, leaseMs, minHoldMs: HOUR_MS })();
      ran.catch(() => {});
      await request.reached;
      await isFree();
      request.release();
      expect(await ran).toEqual({ outcome: "ran", value: "value" });
    }));

  test("is released when the server replies again, not only when the lease ends", async () => {
    const { proxy, local } = await behindProxy({ enableOfflineQueue: false, autoResendUnfulfilledCommands: false });
    const wish = { ...every, leaseMs: HOUR_MS, minHoldMs: 500 };
    expect(await scheduled(local, name, () => "value", wish)()).toEqual({ outcome: "ran", value: "value" });
    proxy.refuse(true);
    proxy.cutAll();
    // Allows at least one failed attempt. A shorter wait would not fail the test, but would prove less.
    await sleep(2_000);
    proxy.refuse(false);
    await isFree();
  });
});

describe("in a cluster", { timeout: 60_000 }, () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);
  afterAll(() => cluster?.stop());
  const scene = useClients();

  test("one of two instances runs each job and each fire of node-cron", async () => {
    const [library] = clusters;
    if (library === undefined) throw new Error("there is a client for a cluster");
    const hosts = [await scene.client(library, cluster.ports), await scene.client(library, cluster.ports)];
    const coordinators = hosts.map((host) => runCoordinator(host, { name, history: true }));
    for (let at = 0; at < 10; at += 1) {
      const jobs = hosts.map((host) => scheduled(host, `${name} ${at}`, () => {}, { ...every, history: true }));
      const results = await Promise.all(jobs.map((job) => job()));
      expect(results.filter(({ outcome }) => outcome === "ran")).toHaveLength(1);
      const answers = await Promise.all(coordinators.map((each) => each.shouldRun(`feed:${at}}`, 30_000)));
      expect(answers.filter(Boolean)).toHaveLength(1);
      await Promise.all(coordinators.map((each) => each.onComplete(`feed:${at}}`)));
    }
  });
});

describe("behind Sentinel", { timeout: 60_000 }, () => {
  let topology: RedisSentinel;
  beforeAll(async () => {
    topology = await startSentinel({ downAfterMs: 60_000 });
  }, 60_000);
  afterAll(() => topology?.stop());
  const scene = useClients();

  test("a promoted replica knows completed runs, and a run in progress ends normally", async () => {
    const [library] = sentinels;
    if (library === undefined) throw new Error("there is a client for Sentinel");
    const [one, two] = [await scene.client(library, topology), await scene.client(library, topology)];
    await scheduled(one, name, () => {}, every)();
    const [began, ended] = [deferred<void>(), deferred<string>()];
    const long = `${name}:long`;
    const running = scheduled(
      one,
      long,
      () => {
        began.resolve();
        return ended.promise;
      },
      every,
    )();
    await began.promise;
    const old = await topology.master();
    await replicated(old);
    await topology.failover();
    await until(async () => (await topology.master()).id !== old.id, "another master");
    for (const each of [name, long]) {
      await vi.waitFor(
        async () => expect(await scheduled(two, each, () => {}, every)()).toMatchObject({ reason: "already-done" }),
        { timeout: 30_000 },
      );
    }
    ended.resolve("value");
    expect(await running).toEqual({ outcome: "ran", value: "value" });
  });
});
