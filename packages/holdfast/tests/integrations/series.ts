/** What the real `prom-client` and the real SDK of OpenTelemetry have collected, in one form. */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { Registry } from "prom-client";
import { expect } from "vitest";
import * as otel from "../../src/integrations/otel/index.js";
import * as prometheus from "../../src/integrations/prometheus/index.js";

/** What was collected of one metric: of each series its labels, and its value or how many there were. */
export type Series = readonly { readonly labels: Readonly<Record<string, unknown>>; readonly value: number }[];

/** Reads one metric, by its name without `holdfast.`. */
export type Read = (name: string) => Promise<Series>;

/** Starts. @param stops  gets what stops it */
export function ofPrometheus(stops: (() => unknown)[]): Read {
  const register = new Registry();
  stops.push(prometheus.startMetrics({ register }));
  return async (name) => {
    const plain = `holdfast_${name.replaceAll(".", "_")}`;
    const metrics = await register.getMetricsAsJSON();
    const metric = metrics.find((each) => each.name.replace(/_total$|_seconds$/, "") === plain);
    expect(metric, name).toBeDefined();
    const all = (metric?.values ?? []) as { metricName?: string; labels: object; value: number }[];
    return all
      .filter(({ metricName = "_count" }) => metricName.endsWith("_count"))
      .map(({ labels, value }) => ({ labels: { ...labels }, value }));
  };
}

/** Starts. @param stops  gets what stops it */
export function ofOpenTelemetry(stops: (() => unknown)[]): Read {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  stops.push(() => provider.shutdown(), otel.startMetrics({ meter: provider.getMeter("test") }));
  return async (name) => {
    exporter.reset();
    await provider.forceFlush();
    const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    const metric = metrics.find(({ descriptor }) => descriptor.name === `holdfast.${name}`);
    return (metric?.dataPoints ?? []).map(({ attributes, value }) => ({
      labels: Object.fromEntries(
        Object.entries(attributes).map(([key, is]) => [key.replace(/^holdfast\.(lock\.)?/, "").replace(".", "_"), is]),
      ),
      value: typeof value === "number" ? value : (value as { count: number }).count,
    }));
  };
}
