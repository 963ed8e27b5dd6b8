/** `holdfast/bullmq`: runs one job at a time per key, for example per customer, across queues and workers. */

export type { Refusal } from "../../recipes/refusal.js";
export { type Holdable, type MakeLock, WorkLostError } from "../../recipes/under-lock.js";
export type { WhenBusy, WithLockOptions } from "./options.js";
export { type LeaseOf, type LockedProcessor, withLock } from "./with-lock.js";
