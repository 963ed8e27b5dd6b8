/** `@holdfast/nestjs`: decorators that run methods under locks, and a module for Holdfast. For Nest 10, 11 and 12. */

export type { Refusal } from "@holdfast/recipes";
export { WorkLostError } from "@holdfast/recipes";
export type { Holdable, MakeLock } from "@holdfast/recipes/internal";
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
