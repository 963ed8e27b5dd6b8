/** `holdfast/bullmq`: one job at a time for each customer, whatever queues and workers it comes from. */

export type { Refusal } from "../../recipes/refusal.js";
export { type Holdable, type MakeLock, WorkLostError } from "../../recipes/under-lock.js";
export type { WhenBusy, WithLockOptions } from "./options.js";
export { type LeaseOf, type LockedProcessor, withLock } from "./with-lock.js";
