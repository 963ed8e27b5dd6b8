/**
 * Derives the keys and channels of a Redisson object from its name, byte for byte as Redisson does.
 *
 * The main key is the mapped name itself. Two rules derive everything else. They check only whether the name contains
 * an opening brace, not whether it has a valid hash tag. So for some names, a derived key is in a different cluster
 * slot than the main key. On a cluster, such names are refused.
 */
import { checkName, show } from "holdfast/internal";

/** Returns `prefix:name`, with the name in braces unless it contains an opening brace. */
export function prefixed(prefix: string, name: string): string {
  return name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

/** Returns `name:suffix`, with the name in braces unless it contains an opening brace. */
export function suffixed(name: string, suffix: string): string {
  return `${suffixBase(name)}:${suffix}`;
}

/** Returns the part of a suffixed name before the colon. */
export function suffixBase(name: string): string {
  return name.includes("{") ? name : `{${name}}`;
}

/** Returns the channel of RLock, FencedLock and SpinLock. For a FairLock waiter, add `:` and its owner id. */
export function lockChannel(name: string): string {
  return prefixed("redisson_lock__channel", name);
}

/** Returns the channel of both sides of a ReadWriteLock. */
export function readWriteChannel(name: string): string {
  return prefixed("redisson_rwlock", name);
}

/** Returns the channel of a Semaphore or PermitExpirableSemaphore. */
export function semaphoreChannel(name: string): string {
  return prefixed("redisson_sc", name);
}

/**
 * Returns the channel of a CountDownLatch. Redisson adds braces here even if the name already contains some.
 */
export function countDownLatchChannel(name: string): string {
  return `redisson_countdownlatch__channel__{${name}}`;
}

/** Returns the key of the unlock latch: it remembers the result of an unlock in case the request is sent again. */
export function unlockLatchKey(name: string, requestId: string): string {
  return `${prefixed("redisson_unlock_latch", name)}:${requestId}`;
}

/** Returns the key of the queue of a FairLock: a list of owner ids. */
export function fairQueueKey(name: string): string {
  return prefixed("redisson_lock_queue", name);
}

/** Returns the key of the deadlines of FairLock waiters: a sorted set of owner ids, scored by ms since 1970. */
export function fairTimeoutKey(name: string): string {
  return prefixed("redisson_lock_timeout", name);
}

/** Returns the key of the last token of a FencedLock. */
export function fencedTokenKey(name: string): string {
  return prefixed("redisson_lock_token", name);
}

/** Returns the key of one read hold of an owner. `count` starts at 1. */
export function readHoldKey(name: string, owner: string, count: number): string {
  return suffixed(name, `${owner}:rwlock_timeout:${count}`);
}

/** Returns the key of the leases of a PermitExpirableSemaphore. */
export function permitLeasesKey(name: string): string {
  return suffixed(name, "timeout");
}

/** Maps the name that a caller uses to the name on the server, like Redisson's `NameMapper`. */
export type NameMapper = (name: string) => string;

/** The rules for names of one `redisson()`. */
export interface NameRules {
  /** Maps each name; undefined to use names unchanged. */
  readonly nameMapper: NameMapper | undefined;
  /** Whether the server is a cluster. Then all keys of an object must be in one slot. */
  readonly isCluster: boolean;
}

/**
 * Returns the name on the server, which is the main key.
 *
 * @param derivedOf  functions that derive the object's other keys and channels, at least one for each rule it uses
 * @throws TypeError, RangeError  an invalid name or mapper result, or a derived key in another slot of a cluster
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
        `name must keep all of its keys in one cluster slot: use no braces, or begin with a hash tag such as {a}; got ${show(raw)}, for which Redisson also uses ${show(stray)}`,
      );
    }
  }
  return raw;
}

/**
 * Returns the part of a key that a cluster hashes: the text between the first `{` and the next `}`, or the whole key.
 */
function hashedOf(key: string): string {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  return open < 0 || close <= open + 1 ? key : key.slice(open + 1, close);
}
