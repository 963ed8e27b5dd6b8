/** `@holdfast/telemetry/otel`: OpenTelemetry metrics and traces of the locks of this process. */
export { type GroupOptions, groupOf } from "../groups.js";
export { type MetricsOptions, startMetrics } from "./metrics.js";
export { startTraces, type TracesOptions } from "./traces.js";
