/** `@holdfast/bullmq`: runs one job at a time per key, for example per customer, across queues and workers. */

export type { Refusal } from "@holdfast/recipes";
export { WorkLostError } from "@holdfast/recipes";
export type { Holdable, MakeLock } from "@holdfast/recipes/internal";
export type { WhenBusy, WithLockOptions } from "./options.js";
export { type LeaseOf, type LockedProcessor, withLock } from "./with-lock.js";
