/**
 * From the name of a Redisson object to its keys and channels, byte for byte as Redisson makes them.
 *
 * The main key is the name itself, mapped. Everything else is derived from it by one of two rules, which ask only whether the
 * name contains an opening brace anywhere, not whether it has a hash tag that a cluster would use. So there are names whose
 * derived keys are in another slot than their main key: on a cluster those are refused.
 */
import { checkName, show } from "../../internal.js";

/** `prefix:name`, with the name in braces unless it has one already. */
export function prefixed(prefix: string, name: string): string {
  return name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

/** `name:suffix`, with the name in braces unless it has one already. */
export function suffixed(name: string, suffix: string): string {
  return `${suffixBase(name)}:${suffix}`;
}

/** What a suffix and its colon are appended to. */
export function suffixBase(name: string): string {
  return name.includes("{") ? name : `{${name}}`;
}

/** Channel of RLock, FencedLock and SpinLock; that of a waiter of a FairLock has its owner id behind a colon. */
export function lockChannel(name: string): string {
  return prefixed("redisson_lock__channel", name);
}

/** Channel of both sides of a ReadWriteLock. */
export function readWriteChannel(name: string): string {
  return prefixed("redisson_rwlock", name);
}

/** Channel of Semaphore and PermitExpirableSemaphore. */
export function semaphoreChannel(name: string): string {
  return prefixed("redisson_sc", name);
}

/** Channel of a CountDownLatch: the one name that Redisson puts into braces even if it has some. */
export function countDownLatchChannel(name: string): string {
  return `redisson_countdownlatch__channel__{${name}}`;
}

/** Where an unlock that is sent again finds what it did the first time. */
export function unlockLatchKey(name: string, requestId: string): string {
  return `${prefixed("redisson_unlock_latch", name)}:${requestId}`;
}

/** The queue of a FairLock: a list of owner ids. */
export function fairQueueKey(name: string): string {
  return prefixed("redisson_lock_queue", name);
}

/** Until when the waiters of a FairLock keep their places: a sorted set of owner ids, by ms since 1970. */
export function fairTimeoutKey(name: string): string {
  return prefixed("redisson_lock_timeout", name);
}

/** Last token of a FencedLock. */
export function fencedTokenKey(name: string): string {
  return prefixed("redisson_lock_token", name);
}

/** One of the read holds of an owner, counted from 1. */
export function readHoldKey(name: string, owner: string, count: number): string {
  return suffixed(name, `${owner}:rwlock_timeout:${count}`);
}

/** Leases of the permits of a PermitExpirableSemaphore. */
export function permitLeasesKey(name: string): string {
  return suffixed(name, "timeout");
}

/** What Redisson calls `NameMapper`: from the name that a caller gives to the one on the server. */
export type NameMapper = (name: string) => string;

/** Where the names of one `redisson()` are used. */
export interface NameRules {
  readonly nameMapper: NameMapper | undefined;
  /** Whether names live on several servers, so that all keys of an object have to share a slot. */
  readonly isCluster: boolean;
}

/**
 * The name on the server, which is the main key.
 *
 * @param derivedOf  one derived key or channel for each rule that the object uses
 * @throws TypeError, RangeError  a wrong name, a mapper that gives none, or one whose derived keys a cluster has elsewhere
 */
export function rawName(
  name: unknown,
  { nameMapper, isCluster }: NameRules,
  ...derivedOf: readonly ((name: string) => string)[]
): string {
  const given = checkName(name);
  const raw = nameMapper === undefined ? given : nameMapper(given);
  if (typeof raw !== "string" || raw === "") {
    throw new TypeError(`nameMapper must return a non-empty string; got ${show(raw)} for ${show(given)}`);
  }
  if (isCluster) {
    const stray = derivedOf.map((derive) => derive(raw)).find((key) => hashedOf(key) !== hashedOf(raw));
    if (stray !== undefined) {
      throw new RangeError(
        `name must be one whose keys a cluster has in one slot: no braces, or first of all a hash tag such as {a}; got ${show(raw)}, to which Redisson adds ${show(stray)}`,
      );
    }
  }
  return raw;
}

/** What a cluster hashes of a key: what stands between the first opening brace and the next closing one, if that is anything. */
function hashedOf(key: string): string {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  return open < 0 || close <= open + 1 ? key : key.slice(open + 1, close);
}
