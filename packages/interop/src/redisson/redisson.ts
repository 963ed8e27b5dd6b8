/** The factory `redisson`, which gives Node access to the Redisson locks of Java services. */
import type { Holdfast, Lock } from "holdfast";
import { internalsOf, MultiLock } from "holdfast/internal";
import { RedissonCountDownLatch } from "./count-down-latch.js";
import { RedissonPermitExpirableSemaphore } from "./expirable-semaphore.js";
import { RedissonFairLock } from "./fair/fair-lock.js";
import { RedissonFencedLock, RedissonLock, RedissonSpinLock } from "./lock.js";
import {
  fairQueueKey,
  fairTimeoutKey,
  fencedTokenKey,
  lockChannel,
  rawName,
  readWriteChannel,
  suffixBase,
  unlockLatchKey,
} from "./names.js";
import type { RecheckOptions } from "./permits-lock.js";
import { latchPlace, permitsPlace } from "./permits-place.js";
import type { Place } from "./place.js";
import { RedissonReadWriteLock } from "./read-write/read-write-lock.js";
import { type RedissonOptions, type RedissonScope, redissonScope } from "./scope.js";
import { RedissonSemaphore } from "./semaphore.js";

/** The Redisson objects that this process shares with Java services. Each method takes the name that Java uses. */
export interface Redisson {
  /**
   * `getLock(name)`.
   *
   * @throws TypeError, RangeError  an invalid name, or a name whose keys are in several slots of a cluster
   */
  lock(name: string): RedissonLock;
  /** `getFencedLock(name)`. @throws TypeError, RangeError  as `lock` */
  fencedLock(name: string): RedissonFencedLock;
  /** `getSpinLock(name)`. @throws TypeError, RangeError  as `lock` */
  spinLock(name: string): RedissonSpinLock;
  /** `getFairLock(name)`. @throws TypeError, RangeError  as `lock` */
  fairLock(name: string): RedissonFairLock;
  /** `getReadWriteLock(name)`. @throws TypeError, RangeError  as `lock` */
  readWriteLock(name: string): RedissonReadWriteLock;
  /**
   * `getMultiLock(…)`: several locks as one, all or none. A string is the name of a `lock`. Node always takes them in
   * the same order, whatever the order of `members`, so Node callers cannot deadlock. Java takes them in the order
   * given. To avoid deadlocks between Java and Node, sort them by name in Java.
   *
   * @param members  1 to 64 names and locks of this Holdfast, of any kinds, each lock only once
   * @throws TypeError, RangeError  invalid member, or the same lock twice
   */
  multiLock(members: readonly (string | Lock)[]): MultiLock;
  /** `getSemaphore(name)`. @throws TypeError, RangeError  as `lock`, or invalid option */
  semaphore(name: string, options?: RecheckOptions): RedissonSemaphore;
  /** `getPermitExpirableSemaphore(name)`. @throws TypeError, RangeError  as `lock`, or invalid option */
  permitExpirableSemaphore(name: string, options?: RecheckOptions): RedissonPermitExpirableSemaphore;
  /**
   * `getCountDownLatch(name)`.
   *
   * @throws TypeError, RangeError  as `lock`, invalid option, or on a cluster a name with `}`
   */
  countDownLatch(name: string, options?: RecheckOptions): RedissonCountDownLatch;
}

/**
 * Gives access to Redisson locks on the server of `holdfast`. Sends nothing and needs no cleanup: closing the Holdfast
 * closes all its locks.
 *
 * @throws TypeError, RangeError  invalid option; the message states its range and the value
 * @throws UnsupportedError       the Holdfast uses several independent servers
 */
export function redisson(holdfast: Holdfast, options: RedissonOptions = {}): Redisson {
  const found = internalsOf(holdfast, "redisson");
  const { session, defaults } = found;
  const scope = redissonScope(found, options);
  const lock = (name: string): RedissonLock => new RedissonLock(placeOf(scope, "lock", name, lockChannel));
  return {
    lock,
    fencedLock: (name) => new RedissonFencedLock(placeOf(scope, "fenced-lock", name, lockChannel, fencedTokenKey)),
    spinLock: (name) => new RedissonSpinLock(placeOf(scope, "spin-lock", name, lockChannel)),
    fairLock: (name) =>
      new RedissonFairLock(placeOf(scope, "fair-lock", name, lockChannel, fairQueueKey, fairTimeoutKey)),
    readWriteLock: (name) =>
      new RedissonReadWriteLock(placeOf(scope, "read-write-lock", name, readWriteChannel, suffixBase)),
    multiLock(members) {
      const locks = Array.isArray(members)
        ? Array.from(members, (member: string | Lock) => (typeof member === "string" ? lock(member) : member))
        : members;
      return new MultiLock(session, defaults, locks as Lock[]);
    },
    semaphore: (name, waits) => new RedissonSemaphore(permitsPlace(scope, "redisson.semaphore", name), waits),
    permitExpirableSemaphore: (name, waits) =>
      new RedissonPermitExpirableSemaphore(permitsPlace(scope, "redisson.permit-expirable-semaphore", name), waits),
    countDownLatch: (name, waits) => new RedissonCountDownLatch(latchPlace(scope, name), waits),
  };
}

/**
 * @param derivedOf  functions that derive the keys and channels of this kind of lock, except for its unlock latch
 */
function placeOf(
  scope: RedissonScope,
  kind: string,
  name: string,
  ...derivedOf: readonly ((name: string) => string)[]
): Place {
  const raw = rawName(name, scope, ...derivedOf, (of) => unlockLatchKey(of, ""));
  return { scope, kind: `redisson.${kind}`, name, raw };
}
