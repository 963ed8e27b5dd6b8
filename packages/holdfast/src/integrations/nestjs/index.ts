/** `holdfast/nestjs`: decorators that run methods under locks, and a module for Holdfast. For Nest 10, 11 and 12. */

export type { Refusal } from "../../recipes/refusal.js";
export { type Holdable, type MakeLock, WorkLostError } from "../../recipes/under-lock.js";
export { HoldfastExceptionFilter } from "./exception-filter.js";
export { HOLDFAST, InjectHoldfast } from "./instances.js";
export { Leading, type LeadingDecorator, type LeadingOptions } from "./leading.js";
export { type Covering, Locked, type LockedDecorator, type LockedOptions } from "./locked.js";
export { HeldLease, type LeaseParameter } from "./marks.js";
export {
  HoldfastModule,
  type HoldfastModuleAsyncOptions,
  type HoldfastModuleOptions,
  type HoldfastModuleTestOptions,
} from "./module.js";
export { Scheduled, type ScheduledDecorator, type ScheduledMethodOptions } from "./scheduled.js";
