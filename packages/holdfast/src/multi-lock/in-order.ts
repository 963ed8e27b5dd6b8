/**
 * Acquires several locks one after the other. All callers use one order for locks of all kinds, which prevents
 * deadlocks.
 *
 * Invariants:
 * - One deadline applies to all locks.
 * - If an attempt fails for any reason, the locks that it took are released.
 * - A caller never gets a set of leases if one of them was lost during the wait for the others.
 */

import { AcquireTimeoutError, PausedError, StoreError } from "../core/errors.js";
import { Lease } from "../core/lease.js";
import type { Lock } from "../core/lock.js";
import type { AcquireOptions, ResolvedOptions } from "../core/options.js";
import { onAbort } from "../core/options.js";
import { releaseAll } from "./multi-hold.js";

/**
 * Sorts locks into the order in which all callers take them. Compares code units, because locales differ between hosts.
 */
export function inOrder(locks: readonly Lock[], keyOf: (lock: Lock) => string): readonly Lock[] {
  return locks.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The request of one `acquire` call. */
export interface OrderedRequest {
  /** Sorted by `inOrder`. */
  readonly locks: readonly Lock[];
  /** The caller's options, unresolved, so that each lock fills in its own defaults. */
  readonly given: AcquireOptions;
  readonly resolved: ResolvedOptions;
  /** How much longer the caller waits, in ms; 0 allows one attempt for each lock. */
  leftMs(): number;
}

/**
 * Waits for each of the locks in turn.
 *
 * @returns one lease for each of `locks`, all held
 * @throws AcquireTimeoutError  names the lock that was not acquired in time; nothing is held
 * @throws PausedError          names the lock that is paused; nothing is held
 * @throws StoreError, ClosedError, signal.reason, and other errors of a member's own acquire
 */
export async function acquireInOrder(request: OrderedRequest): Promise<readonly Lease[]> {
  for (;;) {
    const end = await acquireEach(request);
    if ("held" in end) return end.held;
    if (request.leftMs() <= 0) throw new AcquireTimeoutError(end.lost, { waitMs: request.resolved.waitMs });
  }
}

/** Tries each lock once, in turn. @returns null if one of them is taken. @throws as `acquireInOrder` */
export async function tryAcquireInOrder({ locks, given }: OrderedRequest): Promise<readonly Lease[] | null> {
  const held: Lease[] = [];
  try {
    for (const lock of locks) {
      const lease = await lock.tryAcquire(given);
      if (lease === null) break;
      held.push(lease);
    }
  } catch (error) {
    void releaseAll(held);
    throw error;
  }
  if (held.length === locks.length && held.every(isHeld)) return held;
  await releaseAll(held);
  return null;
}

const MEMBER_LOST = Symbol("a member was lost during the wait for the others");

/**
 * Makes one pass through all the locks, starting with the first.
 *
 * @returns the leases of all locks; or the name of a lock that was lost during the pass, so the pass must be repeated
 */
async function acquireEach(
  request: OrderedRequest,
): Promise<{ readonly held: readonly Lease[] } | { readonly lost: string }> {
  const { locks, given, leftMs } = request;
  const { signal } = request.resolved;
  const held: Lease[] = [];
  const interrupt = new AbortController();
  signal?.throwIfAborted();
  const removeAbortListener = signal && onAbort(signal, () => interrupt.abort(signal.reason));
  try {
    for (const lock of locks) {
      let lease: Lease;
      try {
        lease = await lock.acquire({ ...given, waitMs: leftMs(), signal: interrupt.signal });
      } catch (error) {
        if (error === MEMBER_LOST) break;
        throw await releasedAfter(error, held, lock.name, request.resolved.waitMs);
      }
      held.push(lease);
      Lease.holdingOf(lease).onLost((reason) => {
        if (reason !== "closing") interrupt.abort(MEMBER_LOST);
      });
    }
  } finally {
    removeAbortListener?.();
  }
  const lost = held.find((lease) => !isHeld(lease));
  if (lost === undefined) return { held };
  await releaseAll(held);
  return { lost: lost.name };
}

/** Releases the locks taken before an acquire of `lockName` failed. @returns the error for the caller */
async function releasedAfter(
  error: unknown,
  held: readonly Lease[],
  lockName: string,
  waitMs: number,
): Promise<unknown> {
  const releases = releaseAll(held);
  if (!(error instanceof AcquireTimeoutError || error instanceof PausedError)) return error;
  // These errors promise that nothing is held, so wait for the releases. If a release is uncertain, return its error
  // instead.
  for (const end of await releases)
    if (end.status === "rejected" && end.reason instanceof StoreError) return end.reason;
  if (error instanceof PausedError) return error;
  const { holder, isOwn, waitersAhead, pause } = error;
  return new AcquireTimeoutError(lockName, { waitMs, holder, isOwn, waitersAhead, pause });
}

function isHeld(lease: Lease): boolean {
  return lease.validForMs() > 0;
}
