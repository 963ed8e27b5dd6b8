/**
 * `holdfast/period-marker`: at most one start in each hour, day or other period, whoever takes the lock.
 */
export { type LastRun, lastRunOf, lookAtPeriod, type PeriodLook, serverTimeMs } from "./look.js";
export type { Period } from "./period.js";
export { type PeriodOptions, type PeriodStart, startOfPeriod } from "./period-marker.js";
