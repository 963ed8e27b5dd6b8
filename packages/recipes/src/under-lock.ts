/**
 * Runs work under a lock and distinguishes a refused acquire, an error of the work, and work that ended after its
 * lease.
 */
import {
  type AcquireOptions,
  type Forced,
  type Holdfast,
  type Lease,
  LeaseLostError,
  type OverReason,
  StoreError,
} from "holdfast";
import { anyInternalsOf } from "holdfast/internal";

/** Anything that can be held: a mutex, a semaphore, a side of a read-write lock, a redlock. */
export interface Holdable {
  /** Runs `work` while holding the lock, like `Lock.run`. */
  run<Result>(work: (lease: Lease) => Result | Promise<Result>, options?: AcquireOptions): Promise<Result>;
}

/** Creates the lock with the given name, for callers that need a kind other than a mutex. */
export type MakeLock = (holdfast: Holdfast, name: string) => Holdable;

/**
 * Returns the mutex with that name, or the redlock if the Holdfast uses several independent servers.
 *
 * @throws TypeError, RangeError  an invalid name, or `holdfast` is not from `createHoldfast`
 */
export function lockNamed(holdfast: Holdfast, name: string): Holdable {
  return anyInternalsOf(holdfast).servers === undefined ? holdfast.mutex(name) : holdfast.redlock(name);
}

/** The result of `runUnder`. */
export type UnderLock<Value> =
  | { readonly ran: true; readonly value: Value }
  /** Nothing was acquired, and the work was not called. `error` is the error of the acquire. */
  | { readonly ran: false; readonly error: unknown };

/** The work ended, but its lease was lost before that. The work may have overlapped with another holder's. */
export class WorkLostError extends LeaseLostError {
  override readonly name: string = "WorkLostError";

  /** What the work returned. */
  readonly value: unknown;

  constructor(
    lockName: string,
    facts: {
      readonly reason: OverReason;
      readonly token: number;
      readonly owner: string;
      readonly forced?: Forced | undefined;
      readonly value: unknown;
    },
  ) {
    super(
      lockName,
      facts,
      " The work ended after that, so it may have overlapped with another holder's. Its result is in error.value.",
    );
    this.value = facts.value;
  }
}

/**
 * Acquires the lock, runs `work` and releases the lock, like `lock.run`.
 *
 * @throws the error that `work` threw, unchanged; otherwise one of the following
 * @throws WorkLostError  the work ended after its lease, whether or not the lock was granted to another holder in the
 * meantime
 * @throws StoreError     the work released its lease itself, and the server did not reply
 */
export async function runUnder<Value>(
  lock: Holdable,
  work: (lease: Lease) => Value | Promise<Value>,
  options: AcquireOptions,
): Promise<UnderLock<Value>> {
  const course: { lease?: Lease; ended?: { readonly value: Value } } = {};
  try {
    const value = await lock.run(async (lease) => {
      course.lease = lease;
      const found = await work(lease);
      course.ended = { value: found };
      return found;
    }, options);
    return { ran: true, value };
  } catch (error) {
    if (course.lease === undefined) return { ran: false, error };
    const loss = course.ended === undefined ? undefined : lossOf(error, course.lease);
    if (course.ended === undefined || loss === undefined) throw error;
    const { lockName, reason, token, owner, forced } = loss;
    throw new WorkLostError(lockName, { reason, token, owner, forced, value: course.ended.value });
  }
}

/**
 * Returns the loss if the lease was lost, for work that has returned. A release that got no reply counts as a loss only
 * if the lease is over.
 */
function lossOf(error: unknown, lease: Lease): LeaseLostError | undefined {
  if (error instanceof LeaseLostError) return error;
  if (!(error instanceof StoreError)) return undefined;
  try {
    lease.assertHeld();
  } catch (over) {
    // If the work released the lease itself, only the reply to that release was lost, not the lease.
    if (over instanceof LeaseLostError && over.reason !== "released") return over;
  }
  return undefined;
}
