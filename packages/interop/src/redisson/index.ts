/**
 * `@holdfast/interop/redisson`: locks in the wire format of Redisson, shared with Java services.
 *
 * See docs/redisson.md for their guarantees, and docs/interop.md for when to use them.
 */

export { type RedissonAwaitOptions, RedissonCountDownLatch } from "./count-down-latch.js";
export type { PermitRelease } from "./expirable-protocol.js";
export {
  type PermitInspection,
  RedissonPermitExpirableSemaphore,
  RedissonPermitLease,
} from "./expirable-semaphore.js";
export { RedissonFairLock } from "./fair/fair-lock.js";
export { RedissonFencedLock, RedissonLock, RedissonSpinLock } from "./lock.js";
export type { NameMapper } from "./names.js";
export type { RecheckOptions, RedissonAcquireOptions, RedissonTryAcquireOptions } from "./permits-lock.js";
export {
  RedissonReadLease,
  RedissonReadLock,
  RedissonReadWriteLock,
  RedissonWriteLease,
  RedissonWriteLock,
} from "./read-write/read-write-lock.js";
export { type Redisson, redisson } from "./redisson.js";
export type { Publish, RedissonOptions } from "./scope.js";
export {
  RedissonSemaphore,
  type RedissonSemaphoreInspection,
  RedissonSemaphoreLease,
  type SetPermitsOptions,
} from "./semaphore.js";
