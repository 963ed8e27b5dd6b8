import {
  type Attributes,
  type Counter,
  type Histogram,
  type Meter,
  metrics,
  type Observable,
} from "@opentelemetry/api";
import { checkKnown, show } from "holdfast/internal";
import {
  COMMAND,
  COUNTERS,
  type CounterName,
  type Definition,
  GAUGES,
  type GaugeName,
  HISTOGRAMS,
  type HistogramName,
} from "../definitions.js";
import { GROUP_OPTIONS, type GroupOptions } from "../groups.js";
import { LockMeter } from "../lock-meter.js";
import type { Labels } from "../sink.js";
import { serverAttributes } from "./server-attributes.js";

/** Options of `startMetrics`: the meter, and how lock names become groups. */
export interface MetricsOptions extends GroupOptions {
  /** The meter for the metrics. @default `metrics.getMeter("holdfast")` of `@opentelemetry/api` */
  readonly meter?: Meter | undefined;
}

/**
 * Starts to measure all locks of this process. The names of the metrics begin with `holdfast.`.
 *
 * @returns a function that stops measuring
 * @throws TypeError, RangeError  invalid option
 */
export function startMetrics(options: MetricsOptions = {}): () => void {
  const { meter = metrics.getMeter("holdfast"), ...groups } = checkKnown(options, ["meter", ...GROUP_OPTIONS]);
  if (typeof meter?.createHistogram !== "function") {
    throw new TypeError(`meter must be an OpenTelemetry Meter; got ${show(meter)}`);
  }
  const counters = new Map<CounterName, Counter>();
  for (const name of Object.keys(COUNTERS) as CounterName[]) {
    const { name: full, help: description, unit } = COUNTERS[name];
    counters.set(name, meter.createCounter(full, { description, unit }));
  }
  const histograms = new Map<HistogramName, Histogram>();
  for (const name of Object.keys(HISTOGRAMS) as HistogramName[]) {
    const { name: full, help: description, unit, buckets } = HISTOGRAMS[name];
    const advice = { explicitBucketBoundaries: [...buckets] };
    histograms.set(name, meter.createHistogram(full, { description, unit, advice }));
  }
  const { name: commandName, help: description, unit, buckets } = COMMAND;
  const advice = { explicitBucketBoundaries: [...buckets] };
  const commands = meter.createHistogram(commandName, { description, unit, advice });
  const locks = new LockMeter(
    {
      command: ({ script, server, errorType }, seconds) =>
        commands.record(seconds, {
          "holdfast.script": script,
          ...serverAttributes(server),
          ...(errorType && { "error.type": errorType }),
        }),
      add: (name, labels, by, value) => counters.get(name)?.add(by, attributesOf(COUNTERS[name], labels, value)),
      record: (name, labels, seconds, value) =>
        histograms.get(name)?.record(seconds, attributesOf(HISTOGRAMS[name], labels, value)),
    },
    groups,
  );
  const stops = (Object.keys(GAUGES) as GaugeName[]).map((name) => {
    const gauge = gaugeOf(meter, name);
    const observe = (result: { observe(value: number, attributes: Attributes): void }): void => {
      for (const [labels, value] of locks.read(name)) result.observe(value, attributesOf(GAUGES[name], labels));
    };
    gauge.addCallback(observe);
    return () => gauge.removeCallback(observe);
  });
  return () => {
    locks.stop();
    for (const stop of stops.splice(0)) stop();
  };
}

function gaugeOf(meter: Meter, name: GaugeName): Observable {
  const { name: full, help: description, unit } = GAUGES[name];
  const isSum = name === "held" || name === "waiting";
  return isSum
    ? meter.createObservableUpDownCounter(full, { description, unit })
    : meter.createObservableGauge(full, { description, unit });
}

function attributesOf({ label }: Definition, { group, kind, mode }: Labels, value?: string): Attributes {
  const own = label === undefined || value === undefined ? {} : { [`holdfast.${label}`]: value };
  const side = mode === undefined ? {} : { "holdfast.lock.mode": mode };
  return { "holdfast.lock.group": group, "holdfast.lock.kind": kind, ...side, ...own };
}
