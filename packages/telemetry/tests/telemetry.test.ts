/** Metrics and traces of locks on a real server, with the real `prom-client` and OpenTelemetry SDK. */

import { AsyncLocalStorage } from "node:async_hooks";
import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { redisson } from "@holdfast/interop/redisson";
import { once } from "@holdfast/recipes";
import { type Context, type ContextManager, context, ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { storeFor } from "../../holdfast/src/stores/detect.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import * as otel from "../src/otel/index.js";
import * as prometheus from "../src/prometheus/index.js";

const CHANNELS = [
  "acquire",
  "wait",
  "grant",
  "ungranted",
  "renew",
  "lost",
  "release",
  "run:started",
  "run:ended",
  "run:skipped",
];
const eventually = { timeout: 15_000, interval: 10 };

let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
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
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client })) as [Holdfast, Holdfast];
});

afterEach(async () => {
  await Promise.all([holdfast.close(), other.close()]);
  for (const client of clients) client.disconnect();
  for (const stop of stops.toReversed()) await stop();
  vi.restoreAllMocks();
  await redis.flushall();
  const heard = CHANNELS.filter((name) => channel(`holdfast:${name}`).hasSubscribers);
  expect(heard).toEqual([]);
});

/** Reads a number from the series with this name, without prefix, and these labels. */
type Reading = (name: string, labels?: Readonly<Record<string, string>>) => Promise<number>;

/** Starts metrics and reads the collected values. */
interface Collector {
  /** Sums the matching series. For a histogram, append `#count` or `#sum` to the name. */
  readonly read: Reading;
  /** Counts the matching series. */
  readonly seriesOf: Reading;
  readonly start: (options?: object) => () => void;
}

function ofPrometheus(): Collector {
  const register = new Registry();
  const fitting = async (name: string, wanted: Readonly<Record<string, string>> = {}): Promise<number[]> => {
    const [base, part] = name.split("#");
    const ending = { count: "_count", sum: "_sum" }[part ?? ""];
    const metrics = await register.getMetricsAsJSON();
    const metric = metrics.find((each) => {
      const plain = each.name.replace(/^holdfast_/, "").replace(/_total$|_seconds$/, "");
      return plain === base?.replaceAll(".", "_");
    });
    expect(metric, name).toBeDefined();
    const fits = (metric?.values ?? []).filter((value) => {
      if (ending !== undefined && (value as { metricName?: string }).metricName?.endsWith(ending) !== true)
        return false;
      return Object.entries(wanted).every(([label, is]) => (value.labels as Record<string, unknown>)[label] === is);
    });
    return fits.map(({ value }) => value);
  };
  return {
    start: (options) => prometheus.startMetrics({ ...options, register }),
    read: async (...which) => sumOf(await fitting(...which)),
    seriesOf: async (...which) => (await fitting(...which)).length,
  };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function ofOpenTelemetry(): Collector {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  stops.push(() => provider.shutdown());
  const fitting = async (name: string, wanted: Readonly<Record<string, string>> = {}): Promise<number[]> => {
    const [base, part] = name.split("#");
    exporter.reset();
    await provider.forceFlush();
    const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    const metric = metrics.find(({ descriptor }) => descriptor.name === `holdfast.${base}`);
    const fits = (metric?.dataPoints ?? []).filter(({ attributes }) =>
      Object.entries(wanted).every(([label, is]) => {
        const key = ["group", "kind", "mode"].includes(label) ? `holdfast.lock.${label}` : `holdfast.${label}`;
        return attributes[key] === is;
      }),
    );
    return fits.map(({ value }) => {
      if (typeof value === "number") return value;
      const distribution = value as { count: number; sum?: number };
      return part === "sum" ? (distribution.sum ?? 0) : distribution.count;
    });
  };
  return {
    start: (options) => otel.startMetrics({ ...options, meter: provider.getMeter("test") }),
    read: async (...which) => sumOf(await fitting(...which)),
    seriesOf: async (...which) => (await fitting(...which)).length,
  };
}

describe.each([
  ["prom-client", ofPrometheus],
  ["OpenTelemetry", ofOpenTelemetry],
])("in %s", (_, collector) => {
  let read: Reading;
  let seriesOf: Reading;
  let start: Collector["start"];

  beforeEach(() => {
    ({ read, seriesOf, start } = collector());
    stops.push(start());
  });

  test("contended runs are visible as waiters, holders and durations", async () => {
    const labels = { group: "order:*", kind: "mutex" };
    let atOnce = 0;
    const work = async (): Promise<void> => {
      atOnce += 1;
      expect(atOnce).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      atOnce -= 1;
    };
    const first = await holdfast.mutex("order:42").acquire();
    const runs = Array.from({ length: 20 }, (_each, at) =>
      (at % 2 === 0 ? holdfast : other).mutex("order:42").run(work, { waitMs: 60_000 }),
    );
    await vi.waitFor(async () => expect(await read("lock.waiting", labels)).toBe(20), eventually);
    expect(await read("lock.held", labels)).toBe(1);
    expect(await read("lock.held.oldest", labels)).toBeGreaterThan(0);
    await first.release();
    await Promise.all(runs);

    expect(await read("lock.waiting", labels)).toBe(0);
    expect(await read("lock.held", labels)).toBe(0);
    expect(await read("lock.held.oldest", labels)).toBe(0);
    expect(await read("lock.acquisitions", { ...labels, outcome: "granted" })).toBe(21);
    expect(await read("lock.acquire.duration#count", { ...labels, outcome: "granted" })).toBe(21);
    expect(await read("lock.wait.duration#count", { ...labels, outcome: "granted" })).toBe(20);
    // Each run waited for all runs before it.
    expect(await read("lock.wait.duration#sum", labels)).toBeGreaterThan((0.005 * (20 * 19)) / 2);
    expect(await read("lock.hold.duration#count", { ...labels, outcome: "released" })).toBe(21);
    expect(await read("lock.hold.duration#sum", labels)).toBeGreaterThan(20 * 0.004);
    expect(await read("lock.releases", { ...labels, outcome: "released" })).toBe(21);
    expect(await read("lock.lost", labels)).toBe(0);
  });

  test("calls without a grant are counted by outcome", async () => {
    const labels = { group: "report", kind: "mutex" };
    const held = await holdfast.mutex("report").acquire();
    expect(await other.mutex("report").tryAcquire()).toBeNull();
    await expect(other.mutex("report").acquire({ waitMs: 1_000 })).rejects.toThrow("report");
    const controller = new AbortController();
    const aborted = other.mutex("report").acquire({ signal: controller.signal });
    await vi.waitFor(async () => expect(await read("lock.waiting", labels)).toBe(1), eventually);
    controller.abort();
    await expect(aborted).rejects.toThrow();
    await holdfast.pause("report", { by: "ana", label: "maintenance" });
    await expect(other.mutex("report").acquire({ waitMs: 1_000 })).rejects.toThrow("paused");
    await held.release();
    const outcomes = await Promise.all(
      ["granted", "refused", "timeout", "aborted", "paused", "unknown"].map((outcome) =>
        read("lock.acquisitions", { ...labels, outcome }),
      ),
    );
    expect(outcomes).toEqual([1, 1, 1, 1, 1, 0]);
    expect(await read("lock.wait.duration#count", { ...labels, outcome: "timeout" })).toBe(1);
    expect(await read("lock.wait.duration#count", { ...labels, outcome: "refused" })).toBe(0);
    expect(await read("lock.waiting", labels)).toBe(0);
  });

  test("losses are counted by reason, and renewals by outcome", async () => {
    const labels = { group: "job", kind: "mutex" };
    // Long enough for a busy machine: the first renewal comes after a third of the lease.
    const renewed = await holdfast.mutex("job").acquire({ leaseMs: 2_400 });
    await vi.waitFor(
      async () => expect(await read("lock.renewals", { ...labels, outcome: "renewed" })).toBeGreaterThan(0),
      eventually,
    );
    await other.mutex("job").forceRelease({ owner: renewed.owner });
    await vi.waitFor(
      async () => expect(await read("lock.lost", { ...labels, reason: "force-released" })).toBe(1),
      eventually,
    );
    const forgotten = once(
      holdfast,
      "job",
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
      { leaseMs: 2_400 },
    );
    forgotten.catch(() => {});
    await vi.waitFor(async () => expect(await read("lock.held", { kind: "once" })).toBe(1), eventually);
    // Changes the owner instead of deleting the record because a renewal would restore a missing record.
    const [record = ""] = await redis.keys("hf:once:*");
    await redis.hset(record, "owner", "another");
    await vi.waitFor(
      async () => expect(await read("lock.lost", { kind: "once", reason: "server-lost" })).toBe(1),
      eventually,
    );
    await expect(forgotten).rejects.toThrow();
    const ended = await holdfast.mutex("job").acquire({ leaseMs: 100, renew: false });
    await vi.waitFor(async () => expect(await read("lock.lost", { ...labels, reason: "expired" })).toBe(1), eventually);
    await ended.release().catch(() => {});
    expect(await read("lock.hold.duration#count", { outcome: "lost" })).toBe(3);
    expect(await read("lock.hold.duration#count")).toBe(3);
    expect(await read("lock.held")).toBe(0);
  });

  test("an outage shows in renewals before it shows in losses", async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port, retryStrategy: () => null });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    const lease = await local.mutex("job").acquire({ leaseMs: 2_400 });
    await own.stop();
    await vi.waitFor(async () => expect(await read("lock.lost", { reason: "expired" })).toBe(1), eventually);
    expect(await read("lock.renewals", { outcome: "retried" })).toBeGreaterThan(0);
    expect(await read("lock.renewals", { outcome: "failed" })).toBe(1);
    await expect(local.mutex("job").tryAcquire()).rejects.toThrow();
    expect(await read("lock.acquisitions", { outcome: "unknown" })).toBe(1);
    expect(lease.validForMs()).toBe(0);
    await local.close();
    client.disconnect();
  });

  test("metrics of a lock start at zero before their event happens", async () => {
    const labels = { group: "new", kind: "mutex", reason: "expired" };
    expect(await seriesOf("lock.lost", labels)).toBe(0);
    await holdfast.mutex("new").run(() => {});
    expect(await seriesOf("lock.lost", labels)).toBe(1);
    expect(await read("lock.lost", labels)).toBe(0);
  });

  test("many lock names share few series", async () => {
    stops.pop()?.();
    stops.push(start({ groupsMax: 3 }));
    const warnings: Error[] = [];
    const listener = (warning: Error): void => void warnings.push(warning);
    process.on("warning", listener);
    stops.push(() => process.off("warning", listener));
    for (let at = 0; at < 50; at += 1) await holdfast.mutex(`order:${at}`).run(() => {});
    for (const name of ["a", "b", "c", "d"]) await holdfast.mutex(name).run(() => {});
    expect(await read("lock.acquisitions", { group: "order:*", outcome: "granted" })).toBe(50);
    expect(await read("lock.acquisitions", { group: "other", outcome: "granted" })).toBe(2);
    expect(await read("lock.acquisitions", { group: "d", outcome: "granted" })).toBe(0);
    await vi.waitFor(() => expect(warnings).toMatchObject([{ code: "HOLDFAST_TELEMETRY_GROUPS" }]), eventually);
  });

  test("an error in the `group` function is reported once and never affects locks", async () => {
    stops.pop()?.();
    const warnings: Error[] = [];
    const listener = (warning: Error): void => void warnings.push(warning);
    process.on("warning", listener);
    stops.push(() => process.off("warning", listener));
    stops.push(
      start({
        group: () => {
          throw new Error("a bug in the mapping");
        },
      }),
    );
    expect(await holdfast.mutex("a").run(() => 5)).toBe(5);
    await vi.waitFor(() => expect(warnings).toMatchObject([{ code: "HOLDFAST_TELEMETRY_FAILED" }]), eventually);
    expect(warnings[0]?.message).toContain("a bug in the mapping");
  });

  test("metrics can stop and start again, and count nothing in between", async () => {
    await holdfast.mutex("a").run(() => {});
    expect(await read("lock.acquisitions", { outcome: "granted" })).toBe(1);
    stops.pop()?.();
    await holdfast.mutex("a").run(() => {});
    stops.push(start());
    await holdfast.mutex("a").run(() => {});
    // prom-client loses earlier counts with its metrics, and OpenTelemetry keeps them.
    expect([1, 2]).toContain(await read("lock.acquisitions", { outcome: "granted" }));
  });

  test("skipped runs are counted by reason, regardless of the event's publisher", async () => {
    const about = { kind: "mutex", lockName: "nightly", clientId: "c", tick: "t" };
    channel("holdfast:run:skipped").publish({ ...about, reason: "already-done" });
    channel("holdfast:run:skipped").publish({ ...about, reason: "held" });
    channel("holdfast:run:ended").publish({ ...about, owner: "o", token: 1, outcome: "succeeded", ranMs: 5 });
    expect(await read("run.skipped", { group: "nightly", reason: "already-done" })).toBe(1);
    expect(await read("run.skipped", { group: "nightly" })).toBe(2);
    expect(await read("run.ended", { outcome: "succeeded" })).toBe(1);
  });

  test("a run that has started exports zeros, so that its failure shows as an increase", async () => {
    const run = { kind: "mutex", lockName: "nightly", clientId: "c", tick: "t", owner: "o", token: 1 };
    channel("holdfast:run:started").publish(run);
    expect(await seriesOf("run.ended", { group: "nightly", outcome: "failed" })).toBe(1);
    expect(await seriesOf("run.skipped", { group: "nightly", reason: "unavailable" })).toBe(1);
    expect(await read("run.ended")).toBe(0);
    channel("holdfast:run:ended").publish({ ...run, outcome: "failed", ranMs: 5 });
    expect(await read("run.ended", { group: "nightly", outcome: "failed" })).toBe(1);
    expect(await read("run.skipped")).toBe(0);
  });

  test("`once` calls are counted by outcome", async () => {
    const end = deferred<number>();
    const running = once(holdfast, "pay:1", () => end.promise);
    await vi.waitFor(async () => expect(await read("lock.held", { kind: "once" })).toBe(1), eventually);
    const joining = once(other, "pay:1", () => 2);
    await once(other, "pay:1", () => 3, { whenRunning: "reject" }).catch(() => {});
    end.resolve(1);
    await Promise.all([running, joining]);
    await once(other, "pay:1", () => 4);
    await once(other, "pay:1", () => 5, { fingerprint: "another" }).catch(() => {});
    const outcomes = await Promise.all(
      ["executed", "joined", "in_flight", "replayed", "mismatch"].map((outcome) => read("once.calls", { outcome })),
    );
    expect(outcomes).toEqual([1, 1, 1, 1, 1]);
    expect(await read("lock.held", { kind: "once" })).toBe(0);
  });

  test("a leader is visible while it leads", async () => {
    const leadership = await holdfast.election("scheduler").campaign("here");
    expect(await read("leader.active", { group: "scheduler" })).toBe(1);
    await leadership.release();
    expect(await read("leader.active", { group: "scheduler" })).toBe(0);
    expect(await read("leader.transitions", { group: "scheduler" })).toBe(1);
  });

  test("a multi-lock counts as its member locks", async () => {
    await holdfast.multiLock(["a", "b"]).run(async () => {
      expect(await read("lock.held")).toBe(2);
    });
    expect(await read("lock.held")).toBe(0);
    expect(await read("lock.hold.duration#count")).toBe(2);
  });

  test("quorum locks and latches are counted like any other lock", async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    const connections = servers.map(({ port }) => new Redis({ port }));
    // Stores instead of clients, because clients of new servers would get no grant for the longest lease.
    const quorum = createHoldfast({ redlock: connections.map((each) => storeFor(each)) });
    const held = await quorum.redlock("q").acquire();
    expect(await quorum.redlock("q").tryAcquire()).toBeNull();
    await expect(quorum.redlock("q").acquire({ waitMs: 1_000 })).rejects.toThrow("q");
    const waiting = quorum.redlock("q").acquire({ waitMs: 60_000 });
    await vi.waitFor(async () => expect(await read("lock.waiting", { kind: "redlock" })).toBe(1), eventually);
    await held.release();
    await (await waiting).release();
    const outcomes = await Promise.all(
      ["granted", "refused", "timeout"].map((outcome) => read("lock.acquisitions", { kind: "redlock", outcome })),
    );
    expect(outcomes).toEqual([2, 1, 1]);
    expect(await read("lock.wait.duration#count", { kind: "redlock", outcome: "granted" })).toBe(1);
    await quorum.close();
    for (const connection of connections) connection.disconnect();
    await Promise.all(servers.map((each) => each.stop()));

    const latch = holdfast.countDownLatch("gate");
    await latch.trySetCount(1);
    const passing = latch.await({ waitMs: 60_000 });
    await vi.waitFor(async () => expect(await read("lock.waiting", { group: "gate" })).toBe(1), eventually);
    await latch.countDown();
    await passing;
    expect(await read("lock.acquisitions", { group: "gate", outcome: "passed" })).toBe(1);
    expect(await read("lock.waiting")).toBe(0);
    expect(await read("lock.held")).toBe(0);
  });

  test("readers and writers of one lock are counted separately", async () => {
    const [read1, write] = [holdfast.readWriteLock("doc").read, other.readWriteLock("doc").write];
    const of = (mode: string): Record<string, string> => ({ group: "doc", kind: "read-write-lock", mode });
    const readers = [await read1.acquire({ leaseMs: 2_400 }), await read1.acquire()];
    expect([await read("lock.held", of("read")), await read("lock.held", of("write"))]).toEqual([2, 0]);
    const writing = write.acquire({ waitMs: 60_000 });
    await vi.waitFor(async () => expect(await read("lock.waiting", of("write"))).toBe(1), eventually);
    expect(await read("lock.waiting", of("read"))).toBe(0);
    const counted = { ...of("read"), outcome: "renewed" };
    await vi.waitFor(async () => expect(await read("lock.renewals", counted)).toBeGreaterThan(0), eventually);
    expect(await read("lock.renewals", of("write"))).toBe(0);
    for (const reader of readers) await reader.release();
    const writer = await writing;
    expect([await read("lock.held", of("read")), await read("lock.held", of("write"))]).toEqual([0, 1]);
    expect(await read1.tryAcquire()).toBeNull();
    await write.forceRelease({ owner: writer.owner });
    await vi.waitFor(async () => expect(await read("lock.lost", of("write"))).toBe(1), eventually);

    const outcomesOf = (mode: string): Promise<number[]> =>
      Promise.all(["granted", "refused"].map((outcome) => read("lock.acquisitions", { ...of(mode), outcome })));
    expect([await outcomesOf("read"), await outcomesOf("write")]).toEqual([
      [2, 1],
      [1, 0],
    ]);
    expect(await read("lock.wait.duration#count", of("read"))).toBe(0);
    expect(await read("lock.wait.duration#count", of("write"))).toBe(1);
    expect(await read("lock.releases", { ...of("read"), outcome: "released" })).toBe(2);
    expect(await read("lock.hold.duration#count", of("read"))).toBe(2);
    expect(await read("lock.hold.duration#count", { ...of("write"), outcome: "lost" })).toBe(1);
    expect(await read("lock.lost", of("read"))).toBe(0);
  });

  test("an upgraded reader counts as one hold of a reader until its release", async () => {
    const labels = { kind: "read-write-lock" };
    const lease = await holdfast.readWriteLock("doc").read.acquire();
    const { token } = lease;
    expect(await lease.tryUpgrade()).toBe(lease);
    expect(lease.token).toBeGreaterThan(token);
    expect(await read("lock.held", { ...labels, mode: "read" })).toBe(1);
    expect(await read("lock.held", labels)).toBe(1);
    await lease.release();
    expect(await read("lock.held", labels)).toBe(0);
    expect(await read("lock.hold.duration#count", { ...labels, mode: "read", outcome: "released" })).toBe(1);
    expect(await read("lock.hold.duration#count", labels)).toBe(1);
  });

  test("a nested hold of a reentrant mutex counts once", async () => {
    const mutex = holdfast.reentrantMutex("deep");
    await mutex.run(async () => {
      await mutex.run(async () => expect(await read("lock.held")).toBe(1));
      expect(await read("lock.held")).toBe(1);
    });
    expect(await read("lock.held")).toBe(0);
    expect(await read("lock.hold.duration#count")).toBe(1);
    expect(await read("lock.acquisitions", { outcome: "granted" })).toBe(2);
  });

  test("a lease that is exported, or ends when Holdfast closes, no longer counts as held", async () => {
    const exported = await holdfast.mutex("a").acquire();
    const passed = exported.export();
    expect(await read("lock.held")).toBe(0);
    expect(await read("lock.releases", { outcome: "handed-over" })).toBe(1);
    await (await other.adopt(passed)).release();
    const third = createHoldfast({ redis });
    await third.mutex("b").acquire();
    await third.close();
    expect(await read("lock.held")).toBe(0);
    expect(await read("lock.lost", { reason: "closed" })).toBe(0);
    expect(await read("lock.hold.duration#count")).toBe(3);
  });

  test.each([
    [{ group: "order" }, "group"],
    [{ groupsMax: 0 }, "groupsMax"],
    [{ groups: 5 }, "groups"],
  ])("an invalid option throws an error that names it: %o", (options, name) => {
    stops.pop()?.();
    expect(() => start(options)).toThrow(name);
  });
});

describe("spans", () => {
  let exporter: InMemorySpanExporter;
  let provider: BasicTracerProvider;

  beforeEach(() => {
    context.setGlobalContextManager(new Contexts().enable());
    exporter = new InMemorySpanExporter();
    provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    const stop = otel.startTraces({ tracer: provider.getTracer("test") });
    stops.push(
      () => context.disable(),
      () => provider.shutdown(),
      stop,
    );
  });

  const spans = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);

  test("of a wait and its hold are children of the span that was active at the call", async () => {
    // The first wait opens the connection for grants. Its context must not leak into later spans.
    const before = await other.mutex("before").acquire();
    const waiting = holdfast.mutex("before").acquire({ waitMs: 60_000 });
    await vi.waitFor(async () => expect((await other.mutex("before").inspect()).waiterCount).toBe(1), eventually);
    await before.release();
    await (await waiting).release();
    const held = await other.mutex("order:42").acquire();
    exporter.reset();
    const tracer = provider.getTracer("test");
    const parent = tracer.startSpan("request");
    const run = context.with(trace.setSpan(ROOT_CONTEXT, parent), () =>
      holdfast.mutex("order:42").run((lease) => {
        expect(trace.getActiveSpan()).toBe(parent);
        return lease.token;
      }),
    );
    await vi.waitFor(async () => expect((await other.mutex("order:42").inspect()).waiterCount).toBe(1), eventually);
    await held.release();
    const token = await run;
    const [acquire] = spans("holdfast.acquire");
    const [, hold] = spans("holdfast.hold");
    for (const span of [acquire, hold]) {
      expect(span?.parentSpanContext?.spanId).toBe(parent.spanContext().spanId);
      expect(span?.attributes).toMatchObject({
        "holdfast.lock.name": "order:42",
        "holdfast.lock.group": "order:*",
        "holdfast.lock.kind": "mutex",
        "holdfast.lock.token": token,
        "db.system.name": "redis",
        "server.address": redis.options.host,
        "server.port": server.port,
      });
    }
    expect(acquire?.attributes["holdfast.waited_ms"]).toBeGreaterThan(0);
    expect(acquire?.events.map(({ name }) => name)).toEqual(["waiting"]);
    expect(acquire?.attributes).toMatchObject({ "holdfast.outcome": "granted" });
    expect(hold?.attributes).toMatchObject({ "holdfast.outcome": "released" });
    expect(hold?.links.map(({ context: { spanId } }) => spanId)).toEqual([acquire?.spanContext().spanId]);
    expect(hold?.status.code).toBe(SpanStatusCode.UNSET);
  });

  test("of a lost hold report the loss, and those of a failed acquire its outcome", async () => {
    const lease = await holdfast.mutex("job").acquire();
    await other
      .mutex("job")
      .acquire({ waitMs: 10 })
      .catch(() => {});
    await other.mutex("job").forceRelease({ token: lease.token });
    await vi.waitFor(() => expect(spans("holdfast.hold")).toHaveLength(1), eventually);
    expect(spans("holdfast.hold")[0]).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "holdfast.outcome": "lost", "holdfast.reason": "force-released" },
    });
    expect(spans("holdfast.acquire")[1]).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { "holdfast.outcome": "timeout" },
    });
  });

  test("of a hold contain events for renewals, failed renewals and the loss", async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port, retryStrategy: () => null });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    const renewals: unknown[] = [];
    const listener = (event: unknown): void => void renewals.push(event);
    subscribe("holdfast:renew", listener);
    stops.push(() => unsubscribe("holdfast:renew", listener));
    await local.mutex("job").acquire({ leaseMs: 2_400 });
    await vi.waitFor(() => expect(renewals).toContainEqual(expect.objectContaining({ error: undefined })), eventually);
    await own.stop();
    await vi.waitFor(() => expect(spans("holdfast.hold")).toHaveLength(1), eventually);
    await expect(local.mutex("job").tryAcquire()).rejects.toThrow();
    const [hold] = spans("holdfast.hold");
    const told = hold?.events.map(({ name }) => name) ?? [];
    expect([...new Set(told)]).toEqual(["renewed", "at_risk", "lost"]);
    const atRisk = hold?.events.find(({ name }) => name === "at_risk");
    expect(atRisk?.attributes).toMatchObject({ "error.type": "ERR_LOCK_STORE" });
    expect(atRisk?.attributes?.["holdfast.valid_for_ms"]).toBeGreaterThan(0);
    expect(hold?.attributes).toMatchObject({ "holdfast.outcome": "lost", "holdfast.reason": "expired" });
    // It is unknown whether the lock was granted, so the span is an error.
    expect(spans("holdfast.acquire").at(-1)).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "holdfast.outcome": "unknown", "error.type": "ERR_LOCK_STORE" },
    });
    await local.close();
    client.disconnect();
  });

  test("of a read-write lock contain its mode, and an upgraded hold ends with its release", async () => {
    const lock = holdfast.readWriteLock("doc");
    const reader = await lock.read.acquire();
    expect(await lock.write.tryAcquire()).toBeNull();
    expect(await reader.tryUpgrade()).toBe(reader);
    await reader.release();
    await lock.write.run(() => {});
    await holdfast.mutex("doc").run(() => {});
    const modesOf = (name: string): unknown[] => spans(name).map(({ attributes }) => attributes["holdfast.lock.mode"]);
    expect(modesOf("holdfast.acquire")).toEqual(["read", "write", "write", undefined]);
    expect(modesOf("holdfast.hold")).toEqual(["read", "write", undefined]);
    expect(spans("holdfast.hold")[0]?.attributes).toMatchObject({ "holdfast.outcome": "released" });
  });

  test("of a Redisson read-write lock contain kind and mode, whether it is granted or not", async () => {
    const waits: unknown[] = [];
    const listener = (event: unknown): void => void waits.push(event);
    subscribe("holdfast:wait", listener);
    stops.push(() => unsubscribe("holdfast:wait", listener));
    const lock = redisson(holdfast).readWriteLock("doc");
    const writer = await lock.write.acquire();
    const leaving = new AbortController();
    const waiting = lock.read.acquire({ waitMs: 60_000, signal: leaving.signal });
    await vi.waitFor(() => expect(waits).toHaveLength(1), eventually);
    leaving.abort(new Error("no longer"));
    await expect(waiting).rejects.toThrow("no longer");
    await writer.release();
    await lock.read.run(() => {});
    const told = (name: string): unknown[] =>
      spans(name).map(({ attributes }) =>
        ["kind", "mode"].map((one) => attributes[`holdfast.lock.${one}`]).concat(attributes["holdfast.outcome"]),
      );
    const kind = "redisson.read-write-lock";
    expect(told("holdfast.acquire")).toEqual([
      [`${kind}.write`, "write", "granted"],
      [`${kind}.read`, "read", "aborted"],
      [`${kind}.read`, "read", "granted"],
    ]);
    expect(told("holdfast.hold")).toEqual([
      [`${kind}.write`, "write", "released"],
      [`${kind}.read`, "read", "released"],
    ]);
    expect(waits).toMatchObject([{ kind: `${kind}.read`, mode: "read" }]);
  });

  test("that are open when tracing stops are ended", async () => {
    const lease = await holdfast.mutex("job").acquire();
    stops.pop()?.();
    expect(spans("holdfast.hold")).toHaveLength(1);
    await lease.release();
  });
});

/** A minimal context manager because OpenTelemetry ships its own in a separate package. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    to: Context,
    call: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(to, () => call.apply(self as ThisParameterType<F>, args));
  }
  bind<T>(_context: Context, target: T): T {
    return target;
  }
  enable(): this {
    return this;
  }
  disable(): this {
    this.#storage.disable();
    return this;
  }
}

test("an error in a tracer or a meter is reported once and never affects locks", async () => {
  const warnings: Error[] = [];
  const listener = (warning: Error): void => void warnings.push(warning);
  process.on("warning", listener);
  stops.push(() => process.off("warning", listener));
  const broken = (): never => {
    throw new Error("an exporter's bug");
  };
  const provider = new BasicTracerProvider();
  const tracer = Object.assign(provider.getTracer("test"), { startSpan: broken });
  const meter = new MeterProvider().getMeter("test");
  meter.createCounter = () => ({ add: broken });
  meter.createHistogram = () => ({ record: broken });
  stops.push(otel.startTraces({ tracer }), otel.startMetrics({ meter }));
  expect(await holdfast.mutex("a").run(() => 5)).toBe(5);
  expect((await once(holdfast, "a", () => 6)).value).toBe(6);
  expect(await (await other.mutex("a").acquire()).release()).toBe("released");
  await vi.waitFor(() => expect(warnings).toHaveLength(2), eventually);
  for (const warning of warnings) expect(warning).toMatchObject({ code: "HOLDFAST_TELEMETRY_FAILED" });
});

test("duration buckets reach one minute, and one hour for holds", async () => {
  const register = new Registry();
  stops.push(prometheus.startMetrics({ register }));
  const first = await holdfast.mutex("a").acquire();
  const second = other.mutex("a").run(() => {}, { waitMs: 60_000 });
  await vi.waitFor(async () => expect((await other.mutex("a").inspect()).waiterCount).toBe(1), eventually);
  await first.release();
  await second;
  const text = await register.metrics();
  const bucketsOf = (name: string): number[] => [
    ...new Set([...text.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)"`, "gm"))].map(([, le]) => Number(le))),
  ];
  const upToAMinute = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
  for (const name of ["lock_acquire", "lock_wait", "store_command"]) {
    expect(bucketsOf(`holdfast_${name}_duration_seconds`)).toEqual([...upToAMinute, Number.NaN]);
  }
  const upToAnHour = [...upToAMinute, 300, 900, 3600];
  expect(bucketsOf("holdfast_lock_hold_duration_seconds")).toEqual([...upToAnHour, Number.NaN]);
});

test("in prom-client, a second start in one registry is refused, and the first keeps working", async () => {
  const register = new Registry();
  stops.push(prometheus.startMetrics({ register }));
  const names = register.getMetricsAsArray().length;
  expect(() => prometheus.startMetrics({ register })).toThrow("holdfast_lock_acquire_duration_seconds");
  await holdfast.mutex("a").run(() => {});
  expect(register.getMetricsAsArray()).toHaveLength(names);
  expect(await register.metrics()).toMatch(/^holdfast_lock_acquisitions_total\{.*outcome="granted"\} 1$/m);
});

test("in prom-client, every lock series has a mode, which is empty for locks without modes", async () => {
  const register = new Registry();
  stops.push(prometheus.startMetrics({ register }));
  await holdfast.mutex("a").run(() => {});
  await holdfast.readWriteLock("a").read.run(() => {});
  const metrics = await register.getMetricsAsJSON();
  const labels = metrics.flatMap(({ values }) => values.map((value) => value.labels as Record<string, unknown>));
  const ofLocks = labels.filter((each) => "kind" in each);
  expect(new Set(ofLocks.map(({ kind, mode }) => `${String(kind)} ${String(mode)}`))).toEqual(
    new Set(["mutex ", "read-write-lock read"]),
  );
});

test.each([
  ["order:8e03978e-40d5-43e8-bc93-6894a57f9324:pay", "order:*:pay"],
  ["invoice/2024/0012", "invoice/*/*"],
  ["user.01ARZ3NDEKTSV4RRFFQ69G5FAV|mail", "user.*|mail"],
  ["commit:deadbeef00", "commit:*"],
  ["mail:ana.maria@example.co.uk:send", "mail:*:send"],
  [`blob:${"x".repeat(33)}`, "blob:*"],
  ["node-cron/nightly:2026-11-23T07:00:00.000Z", "node-cron/nightly:*:*:*.*"],
  ["acme/POST /payments order-42", "*/POST /payments *"],
  ["acme/POST /payments order 42 of ana", "*/POST /payments *"],
  ["nightly-report", "nightly-report"],
  ["", ""],
])("the group of %s is %s", (name, group) => {
  expect(prometheus.groupOf(name)).toBe(group);
});

test("the documentation describes every metric and warning", () => {
  const page = ["recipes/telemetry.md", "metrics.md"]
    .map((name) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8"))
    .join("\n");
  for (const code of ["HOLDFAST_TELEMETRY_GROUPS", "HOLDFAST_TELEMETRY_FAILED"]) expect(page).toContain(code);
  return import("../src/definitions.js").then(({ COMMAND, COUNTERS, GAUGES, HISTOGRAMS }) => {
    for (const { name } of [COUNTERS, GAUGES, HISTOGRAMS, { COMMAND }].flatMap((all) => Object.values(all))) {
      expect(page).toContain(`\`${name}\``);
    }
  });
});
