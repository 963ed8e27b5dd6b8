/** `@holdfast/telemetry/prometheus`: metrics of the locks of this process, with `prom-client`. */
export { type GroupOptions, groupOf } from "../groups.js";
export { type PrometheusOptions, startMetrics } from "./metrics.js";
