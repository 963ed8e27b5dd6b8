/** Reads metrics from the real `prom-client` and the real OpenTelemetry SDK in one format. */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { Registry } from "prom-client";
import { expect } from "vitest";
import * as otel from "../src/otel/index.js";
import * as prometheus from "../src/prometheus/index.js";

/** The series of one metric: the labels of each, and its value or its number of observations. */
export type Series = readonly { readonly labels: Readonly<Record<string, unknown>>; readonly value: number }[];

/** Reads one metric. Its name omits the prefix `holdfast.`. */
export type Read = (name: string) => Promise<Series>;

/** Starts metrics in prom-client. @param stops  receives the cleanup */
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

/** Starts metrics in OpenTelemetry. @param stops  receives the cleanup */
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
