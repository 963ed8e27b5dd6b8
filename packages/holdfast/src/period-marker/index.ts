/**
 * `holdfast/period-marker`: at most one start in each hour, day or other period, whoever takes the lock.
 */
export type { Period } from "./period.js";
export {
  type LastRun,
  lastRunOf,
  type PeriodOptions,
  type PeriodStart,
  serverTimeMs,
  startOfPeriod,
} from "./period-marker.js";
