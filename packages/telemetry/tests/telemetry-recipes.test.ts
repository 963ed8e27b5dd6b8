/** Metrics and spans of permits, commands, requests and recipes, with the real `prom-client` and OpenTelemetry SDK. */

import { idempotency } from "@holdfast/http/hono";
import { lead, once } from "@holdfast/recipes";
import { SpanStatusCode } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createHoldfast, type Holdfast } from "holdfast";
import { Hono } from "hono";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import * as otel from "../src/otel/index.js";
import { ofOpenTelemetry, ofPrometheus, type Read } from "./series.js";

const eventually = { timeout: 15_000, interval: 10 };
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
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
  holdfast = createHoldfast({ redis });
});

afterEach(async () => {
  await holdfast.close();
  for (const stop of stops.toReversed()) await stop();
  await redis.flushall();
});

describe.each([
  ["prom-client", ofPrometheus],
  ["OpenTelemetry", ofOpenTelemetry],
])("in %s", (_, collector) => {
  let series: Read;
  const read = async (name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> =>
    (await series(name)).find((each) => Object.entries(labels).every(([label, is]) => each.labels[label] === is))
      ?.value;

  beforeEach(() => {
    series = collector(stops);
  });

  test("permits in use count all leases of this process, next to the declared limit", async () => {
    const labels = { group: "pool:*", kind: "semaphore" };
    const pool = holdfast.semaphore("pool:7", { permits: 10 });
    const [three, four] = [await pool.acquire({ permits: 3 }), await pool.acquire({ permits: 4 })];
    await holdfast.mutex("pool:7").run(() => {});
    expect(await read("semaphore.permits.used", labels)).toBe(7);
    expect(await read("semaphore.permits.limit", labels)).toBe(10);
    await three.release();
    expect(await read("semaphore.permits.used", labels)).toBe(4);
    await four.release();
    expect(await read("semaphore.permits.used", labels)).toBe(0);
    expect(await read("semaphore.permits.limit", labels)).toBe(10);
    for (const name of ["semaphore.permits.used", "semaphore.permits.limit"]) {
      expect((await series(name)).map((each) => each.labels)).toMatchObject([labels]);
    }
  });

  test("commands are measured by script, and by error type if they fail", async () => {
    await holdfast.mutex("order:42").run(() => {});
    expect(await read("store.command.duration", { script: "mutex/acquire" })).toBe(1);
    expect(await read("store.command.duration", { script: "mutex/release" })).toBe(1);
    await redis.set("hf:semaphore:{broken}", "of another type");
    await expect(holdfast.semaphore("broken", { permits: 1 }).tryAcquire()).rejects.toThrow();
    expect(await read("store.command.duration", { script: "permits/acquire", error_type: "ERR_LOCK_STORE" })).toBe(1);
    const known = new Set((await series("store.command.duration")).flatMap(({ labels }) => Object.keys(labels)));
    expect([...known].sort(), "no name, no owner").toEqual(["error_type", "script", "server_address", "server_port"]);
    const acquired = (await series("store.command.duration")).filter(({ labels }) => labels.script === "mutex/acquire");
    const { host, port } = redis.options;
    expect(acquired.map(({ labels }) => [labels.server_address, String(labels.server_port)])).toEqual([
      [host, String(port)],
    ]);
  });

  test("HTTP requests are counted by route and outcome", async () => {
    const app = new Hono();
    const ended = deferred<void>();
    app.post("/payments/:id", idempotency(holdfast, { required: true }), async (c) => {
      if (c.req.param("id") === "slow") await ended.promise;
      return c.json({ ok: true }, c.req.param("id") === "broken" ? 500 : 201);
    });
    const post = async (id: string, key?: string, body = "{}"): Promise<Response> =>
      app.request(`/payments/${id}`, {
        method: "POST",
        body,
        headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
      });
    await post("1", "a");
    await post("1", "a");
    await post("1", "a", '{"other":1}');
    await post("1");
    await post("broken", "b");
    const slow = post("slow", "c");
    await vi.waitFor(async () => expect((await post("slow", "c")).status).toBe(409), eventually);
    ended.resolve();
    expect((await slow).status).toBe(201);
    const labels = { group: "POST /payments/:id", kind: "http" };
    const outcomes = ["carried-out", "replayed", "mismatch", "missing", "released", "running", "unstored"];
    const counts = await Promise.all(outcomes.map((outcome) => read("idempotency.requests", { ...labels, outcome })));
    expect(counts.map((count, at) => (outcomes[at] === "running" ? Math.min(count ?? 0, 1) : count))).toEqual([
      2, 1, 1, 1, 1, 1, 0,
    ]);
    expect(await read("lock.acquisitions", labels), "it is no lock").toBeUndefined();
  });
});

describe("spans", () => {
  let exporter: InMemorySpanExporter;

  beforeEach(() => {
    exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    stops.push(() => provider.shutdown(), otel.startTraces({ tracer: provider.getTracer("test") }));
  });

  const spans = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);

  test("of `once` report each outcome, and are errors only if the work failed or is uncertain", async () => {
    const failed = new Error("declined");
    await once(holdfast, "pay:1", () => Promise.reject(failed)).catch(() => {});
    const { token, attempt } = await once(holdfast, "pay:1", () => 1, { fingerprint: "a" });
    await once(holdfast, "pay:1", () => 2, { fingerprint: "a" });
    await once(holdfast, "pay:1", () => 3, { fingerprint: "b" }).catch(() => {});
    const { ERROR, UNSET } = SpanStatusCode;
    expect(
      spans("holdfast.once").map(({ attributes, status }) => [attributes["holdfast.outcome"], status.code]),
    ).toEqual([
      ["executed", ERROR],
      ["executed", UNSET],
      ["replayed", UNSET],
      ["mismatch", UNSET],
    ]);
    const [first, second, , mismatch] = spans("holdfast.once");
    expect(first?.status.message).toBe("declined");
    expect(second?.attributes).toMatchObject({
      "holdfast.lock.name": "/pay:1",
      "holdfast.lock.group": "/pay:*",
      "holdfast.lock.kind": "once",
      "holdfast.lock.token": token,
      "holdfast.once.attempt": attempt,
      "server.address": redis.options.host,
      "server.port": server.port,
    });
    expect(mismatch?.attributes).toMatchObject({ "error.type": "ERR_LOCK_ONCE_MISMATCH" });
  });

  test("of `lead` cover one term each and report how it ended", async () => {
    const election = holdfast.election("scheduler");
    const term = await lead(election, (leadership) => leadership.term, { delayMaxMs: 0 });
    const error = new Error("a bug");
    await expect(lead(election, () => Promise.reject(error), { delayMaxMs: 0 })).rejects.toBe(error);
    const [returned, broken] = spans("holdfast.lead");
    expect(returned?.attributes).toMatchObject({
      "holdfast.lock.name": "scheduler",
      "holdfast.lock.kind": "election",
      "holdfast.lock.token": term,
      "holdfast.outcome": "returned",
      "server.address": redis.options.host,
      "server.port": server.port,
    });
    expect(returned?.status.code).toBe(SpanStatusCode.UNSET);
    expect(broken?.attributes).toMatchObject({ "holdfast.outcome": "failed", "error.type": "Error" });
    expect(broken?.status).toEqual({ code: SpanStatusCode.ERROR, message: "a bug" });
  });

  test("that are open when tracing stops are ended, and no more are created", async () => {
    const ended = deferred<void>();
    const running = once(holdfast, "pay:1", () => ended.promise);
    await vi.waitFor(() => expect(holdfast.held()).toHaveLength(1), eventually);
    stops.pop()?.();
    expect(spans("holdfast.once")).toHaveLength(1);
    ended.resolve();
    await running;
    await once(holdfast, "pay:2", () => 1);
    expect(spans("holdfast.once")).toHaveLength(1);
  });
});
