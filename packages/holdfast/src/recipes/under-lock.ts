/** Work under a lock, for recipes that have to tell a refusal from an error of the work, and what ended too late from both. */
import {
  type AcquireOptions,
  type Forced,
  type Holdfast,
  type Lease,
  LeaseLostError,
  type OverReason,
  StoreError,
} from "../index.js";
import { anyInternalsOf } from "../internal.js";

/** Whatever can be held: a mutex, a semaphore, a side of a read-write lock, a redlock. */
export interface Holdable {
  run<Result>(work: (lease: Lease) => Result | Promise<Result>, options?: AcquireOptions): Promise<Result>;
}

/** Makes the lock of that name, where it is to be another kind than a mutex. */
export type MakeLock = (holdfast: Holdfast, name: string) => Holdable;

/**
 * The mutex of that name; on several independent servers the redlock.
 *
 * @throws TypeError, RangeError  a wrong name, or not what `createHoldfast` returned
 */
export function lockNamed(holdfast: Holdfast, name: string): Holdable {
  return anyInternalsOf(holdfast).servers === undefined ? holdfast.mutex(name) : holdfast.redlock(name);
}

/** What has become of it. */
export type UnderLock<Value> =
  | { readonly ran: true; readonly value: Value }
  /** Nothing was acquired, and the work was not called: what `acquire` threw. */
  | { readonly ran: false; readonly error: unknown };

/** The work ended, but its lease was lost meanwhile: what it did may have overlapped with another holder's. */
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
    super(lockName, facts);
    this.value = facts.value;
  }
}

/**
 * Acquires, works, releases, as `lock.run`.
 *
 * @throws what `work` threw, the same object; otherwise
 * @throws WorkLostError  the work ended after its lease, be it known or not whether anybody was granted meanwhile
 * @throws StoreError     the work has released its lease itself, and the server did not answer
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

/** The loss, after work that has ended: that the server did not answer `run` tells only where the lease was over by then. */
function lossOf(error: unknown, lease: Lease): LeaseLostError | undefined {
  if (error instanceof LeaseLostError) return error;
  if (!(error instanceof StoreError)) return undefined;
  try {
    lease.assertHeld();
  } catch (over) {
    // Work may have released it itself, and then its answer was lost, and not the lease.
    if (over instanceof LeaseLostError && over.reason !== "released") return over;
  }
  return undefined;
}
