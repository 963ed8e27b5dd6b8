/** `holdfast/period-marker`: allows at most one start per hour, day or other period among all holders of a lock. */

export type { Period } from "./period.js";
export { type PeriodOptions, type PeriodStart, startOfPeriod } from "./period-marker.js";
export { inspectPeriod, type LastRun, lastRunOf, type PeriodInspection, serverTimeMs } from "./read-period.js";
