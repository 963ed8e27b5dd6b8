/** Metrics of locks for Prometheus (wait and hold times, lost leases), and metrics and traces for OpenTelemetry. */
import { strict as assert } from "node:assert";
import process from "node:process";
import * as otel from "@holdfast/telemetry/otel";
import { startMetrics } from "@holdfast/telemetry/prometheus";
import { metrics, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { register } from "prom-client";

const stop = startMetrics({ register }); // once in each process, for all its locks

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const first = await holdfast.mutex("order:42").acquire();
const second = holdfast.mutex("order:42").run(() => "served", { waitMs: 60_000 });
while ((await holdfast.mutex("order:42").inspect()).waiterCount === 0);
await first.release();
await second;

const text = await register.metrics(); // what /metrics answers
assert.match(text, /^holdfast_lock_acquisitions_total\{group="order:\*",kind="mutex",mode="",outcome="granted"\} 2$/m);
assert.match(text, /^holdfast_lock_wait_duration_seconds_count\{.*outcome="granted".*\} 1$/m);
assert.match(text, /^holdfast_lock_hold_duration_seconds_count\{.*outcome="released".*\} 2$/m);
assert.match(text, /^holdfast_lock_lost_total\{group="order:\*",kind="mutex",mode="",reason="expired"\} 0$/m);

// Names contain ids, and labels must not: map names to groups.
stop();
const stopByArea = startMetrics({ register, group: (lockName) => lockName.split(":")[0] ?? "other" });
await holdfast.mutex("order:43").run(() => {});
assert.match(await register.metrics(), /group="order"/);

stopByArea();

// OpenTelemetry setup. In a real program, the exporters send to a collector.
const spans = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: measured })] });
metrics.setGlobalMeterProvider(meters);

const stops = [otel.startMetrics(), otel.startTraces()]; // or with { meter } and { tracer }

await holdfast.mutex("order:44").run(() => {});
for (const stopOne of stops) stopOne();
assert.deepEqual(
  spans.getFinishedSpans().map(({ name }) => name),
  ["holdfast.acquire", "holdfast.hold"],
);
await meters.forceFlush();
const [read] = measured.getMetrics();
assert.ok(read?.scopeMetrics[0]?.metrics.some(({ descriptor }) => descriptor.name === "holdfast.lock.acquisitions"));

await meters.shutdown();
trace.disable();
metrics.disable();
await holdfast.close();
redis.disconnect();
