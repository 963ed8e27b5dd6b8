/** `redisson`: the locks that Java services have by Redisson, from Node. */
import type { Holdfast, Lock } from "../../index.js";
import { internalsOf, MultiLock } from "../../internal.js";
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

/** The objects of Redisson that this process shares with Java services. Each method takes the name that they use there. */
export interface Redisson {
  /** `getLock(name)`. @throws TypeError, RangeError  a wrong name, or one that a cluster cannot have in one slot */
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
   * `getMultiLock(…)`: several locks as one, all or none. A string is the name of a `lock`. They are taken in one order
   * whatever the order of the members, so that callers of Node never wait for each other in a circle; Java takes them in the
   * order in which they are given, so give them there in the order of their names.
   *
   * @param members  1 to 64 names and locks of this Holdfast, of any kinds, no two of which are the same lock
   * @throws TypeError, RangeError  a wrong member, or the same lock twice
   */
  multiLock(members: readonly (string | Lock)[]): MultiLock;
  /** `getSemaphore(name)`. @throws TypeError, RangeError  as `lock`, or a wrong option */
  semaphore(name: string, options?: RecheckOptions): RedissonSemaphore;
  /** `getPermitExpirableSemaphore(name)`. @throws TypeError, RangeError  as `lock`, or a wrong option */
  permitExpirableSemaphore(name: string, options?: RecheckOptions): RedissonPermitExpirableSemaphore;
  /** `getCountDownLatch(name)`. @throws TypeError, RangeError  as `lock`, and any name with `}` on a cluster; or a wrong option */
  countDownLatch(name: string, options?: RecheckOptions): RedissonCountDownLatch;
}

/**
 * A way to the locks of Redisson on the server of that Holdfast. Costs nothing and needs no clean-up: what it gives is
 * closed with the Holdfast.
 *
 * @throws TypeError, RangeError  a wrong option; the message names it, its range and what came
 * @throws UnsupportedError       the Holdfast is on several independent servers
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

/** @param derivedOf  one derived key or channel for each rule that the kind uses, beside that of the unlock latch */
function placeOf(
  scope: RedissonScope,
  kind: string,
  name: string,
  ...derivedOf: readonly ((name: string) => string)[]
): Place {
  const raw = rawName(name, scope, ...derivedOf, (of) => unlockLatchKey(of, ""));
  return { scope, kind: `redisson.${kind}`, name, raw };
}
