/** `holdfast/prometheus`: what happens to locks, in metrics of `prom-client`. */
export { type GroupOptions, groupOf } from "../telemetry/groups.js";
export { type PrometheusOptions, startMetrics } from "./metrics.js";
