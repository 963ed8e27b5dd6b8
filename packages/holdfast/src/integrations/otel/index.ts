/** `holdfast/otel`: what happens to locks, in metrics and traces of OpenTelemetry. */
export { type GroupOptions, groupOf } from "../telemetry/groups.js";
export { type MetricsOptions, startMetrics } from "./metrics.js";
export { startTraces, type TracesOptions } from "./traces.js";
