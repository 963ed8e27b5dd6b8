/**
 * The types of the Web Locks API, as in TypeScript's DOM library, so that programs need not include that library.
 * A `WebLockManager` can be used wherever a `LockManager` is expected.
 */
import type { Lease } from "../core/lease.js";

/** How a lock is held: `exclusive` (alone) or `shared` (together with other shared holders). */
export type WebLockMode = "exclusive" | "shared";

/** A lock that was granted, as passed to the callback of a request. */
export interface WebLock {
  /** The name that was requested. */
  readonly name: string;
  /** The mode that was requested. */
  readonly mode: WebLockMode;
}

/** Options of `request`. */
export interface WebLockOptions {
  /** How to hold the lock. @default "exclusive" */
  readonly mode?: WebLockMode | undefined;
  /** Whether to call the callback with null if the lock cannot be granted now, instead of waiting. @default false */
  readonly ifAvailable?: boolean | undefined;
  /**
   * Whether to end all current holds of the lock and get it before all waiters. The requests of those holders
   * reject with an AbortError. Their callbacks continue, so use this only to recover a lock whose holders are stuck.
   * @default false
   */
  readonly steal?: boolean | undefined;
  /** Aborting ends the wait, and the request rejects with the signal's reason. Aborting never ends a hold. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs while the lock is held. The lock is released when the returned promise settles.
 *
 * @param lock   null if the request had `ifAvailable` and the lock was not available
 * @param lease  the lease behind the lock, with its fencing token and a signal that aborts when the lock is lost; null
 *               if `lock` is null
 */
export type WebLockCallback<Result> = (lock: WebLock | null, lease: Lease | null) => Result;

/** A request in a snapshot. */
export interface WebLockInfo {
  /** The name of the lock. */
  name: string;
  /** The mode that was requested. */
  mode: WebLockMode;
  /** Id of the client that holds the lock or waits for it. Each call of `createHoldfast` creates one client. */
  clientId: string;
}

/** The state of all locks under one prefix, from `query`. It may have changed by the time you read it. */
export interface WebLockSnapshot {
  /** The locks that are held: at most 1,000 holders of each name. */
  held: WebLockInfo[];
  /** The waiting requests: the first 100 of each name, in the order in which they will be granted. */
  pending: WebLockInfo[];
}

/** Requests locks that all processes with the same server and prefix share. */
export interface WebLockManager {
  /**
   * Waits for the lock, runs the callback while it is held, and releases the lock when the callback's promise settles.
   *
   * The lock is the read-write lock with this name, so it also excludes holders of `holdfast.readWriteLock(name)`. An
   * exclusive request is a writer, and a shared one is a reader. Not reentrant: a request in the callback for the same
   * name waits forever.
   *
   * @param name  at most 512 bytes; must not begin with `-`
   * @returns what the callback returned
   * @throws what the callback threw
   * @throws DOMException "AbortError"         the lock was stolen or force-released, or its lease ended, while the
   *                                           callback ran; the cause is a LeaseLostError; the callback continues
   *                                           without the lock
   * @throws DOMException "NotSupportedError"  the name begins with `-`, or the options exclude each other; nothing was
   *                                           sent
   * @throws TypeError, RangeError             an invalid argument, or a name of more than 512 bytes; nothing was sent
   * @throws the signal's reason, if the signal aborts before the callback is called
   * @throws PausedError, StoreError, EvictionError, ClosedError  as `acquire` of any lock; the callback was not called
   */
  request<Result>(name: string, callback: WebLockCallback<Result>): Promise<Awaited<Result>>;
  request<Result>(name: string, options: WebLockOptions, callback: WebLockCallback<Result>): Promise<Awaited<Result>>;

  /**
   * Lists the holders and the waiters of all read-write locks with the prefix of this Holdfast, in all processes.
   * Read-only.
   *
   * Searches the whole database with SCAN, on every primary of a cluster, so it is slow on a large database. If a
   * server of a cluster does not reply, its locks are missing.
   *
   * @throws StoreError   no server replied, or the Redis user is not allowed to run SCAN
   * @throws ClosedError  this Holdfast was closed
   */
  query(): Promise<WebLockSnapshot>;
}
