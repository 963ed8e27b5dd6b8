import type { Refusal } from "@holdfast/recipes";
import { lockNamed, refusalOf, runUnder } from "@holdfast/recipes/internal";
import { DelayedError, type Job, type Processor } from "bullmq";
import { type AcquireOptions, EvictionError, type Holdfast, type Lease, ProtocolError, StoreError } from "holdfast";
import { anyInternalsOf, show } from "holdfast/internal";
import { type Delaying, type ResolvedWithLock, resolveWithLock, type WithLockOptions } from "./options.js";

/** The lease of a job. Undefined for a job without a key, if `keyOf` can return undefined. */
export type LeaseOf<Key extends string | undefined> = Lease | Extract<Key, undefined>;

/**
 * A BullMQ processor that gets the lease as its fourth argument.
 *
 * `signal` aborts when the job is canceled or the lease is lost.
 */
export type LockedProcessor<Data, Result, Name extends string, Key extends string | undefined> = (
  job: Job<Data, Result, Name>,
  jobToken: string | undefined,
  signal: AbortSignal,
  lease: LeaseOf<Key>,
) => Promise<Result>;

/**
 * Returns a processor that runs under a lock: of all jobs with the same key, in any queue, one runs at a time.
 *
 * A job whose lock is held moves to the delayed jobs, so that it does not occupy a worker; see `whenBusy`. Such a move
 * counts as a start of the job (`attemptsStarted`), but not as an attempt (`attemptsMade`).
 *
 * Two processors never both have a valid lease for the same key. **A job may still run twice**: if a worker stalls,
 * BullMQ restarts its job, which runs as soon as the lock is free. So pass `lease.token` to the storage that you write
 * to, or use `once`.
 *
 * The returned processor throws the following errors. Each fails the attempt:
 *
 * - `WorkLostError`, a LeaseLostError: the processor ended after its lease
 * - `AcquireTimeoutError` or `PausedError`: `whenBusy` allows no further waiting; the error has the holder or the pause
 * - `StoreError` or `EvictionError`: the server did not reply, or may evict keys
 * - `ClosedError`: the Holdfast was closed before the worker
 *
 * @param holdfast   a Holdfast from `createHoldfast`
 * @param keyOf      returns the name of the lock, 1 to 512 bytes; undefined for a job that needs no lock
 * @param processor  a function. Its errors, including `UnrecoverableError`, pass through unchanged. The path or URL of
 *                   a file, which BullMQ runs in a separate process, is not accepted
 * @returns a processor for `new Worker`
 * @throws TypeError, RangeError  invalid argument
 */
export function withLock<
  // biome-ignore lint/suspicious/noExplicitAny: as in BullMQ's own types if the type of the data is not given
  Data = any, // oxlint-disable-line typescript/no-explicit-any
  // biome-ignore lint/suspicious/noExplicitAny: the same
  Result = any, // oxlint-disable-line typescript/no-explicit-any
  Name extends string = string,
  Key extends string | undefined = string,
>(
  holdfast: Holdfast,
  keyOf: (job: Job<Data, Result, Name>) => Key,
  processor: LockedProcessor<Data, Result, Name, Key>,
  options: WithLockOptions<Data, Result, Name> = {},
): Processor<Data, Result, Name> {
  anyInternalsOf(holdfast);
  if (typeof keyOf !== "function") throw new TypeError(`keyOf must be a function that takes a job; got ${show(keyOf)}`);
  if (typeof processor !== "function") {
    throw new TypeError(
      `processor must be a function: a sandboxed processor runs in a separate process, which cannot receive a lease; got ${show(processor)}`,
    );
  }
  const resolved = resolveWithLock(options);
  // Declares three parameters because BullMQ creates a signal only for such processors.
  return async (job, jobToken, signal) => {
    const cancelled = signal ?? new AbortController().signal;
    const key: string | undefined = keyOf(job);
    // The cast is safe because `Key` includes undefined if a key is undefined.
    if (key === undefined) return processor(job, jobToken, cancelled, undefined as LeaseOf<Key>);
    const lock = (resolved.lock ?? lockNamed)(holdfast, key);
    const work = (lease: Lease): Promise<Result> =>
      processor(job, jobToken, AbortSignal.any([cancelled, lease.signal]), lease);
    const outcome = await runUnder(lock, work, acquireOptions(resolved, job, cancelled));
    if (outcome.ran) return outcome.value;
    throw await refused(outcome.error, job, jobToken, cancelled, resolved);
  };
}

function acquireOptions<Data, Result, Name extends string>(
  { leaseMs, maxHoldMs, waitMs, label }: ResolvedWithLock<Data, Result, Name>,
  job: Job<Data, Result, Name>,
  signal: AbortSignal,
): AcquireOptions {
  return {
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(maxHoldMs === undefined ? {} : { maxHoldMs }),
    label: label ?? labelOf(job),
    waitMs,
    signal,
  };
}

/** Names the job for waiting callers. 64 characters of at most 4 bytes fit in the 256 bytes of a label. */
function labelOf({ queueName, id }: Pick<Job, "queueName" | "id">): string {
  return Array.from(`${queueName}:${id}`).slice(0, 64).join("");
}

/** Returns the error to throw for a job that did not get its lock. Delays the job if `whenBusy` says so. */
async function refused<Data, Result, Name extends string>(
  error: unknown,
  job: Job<Data, Result, Name>,
  jobToken: string | undefined,
  cancelled: AbortSignal,
  { delaying, onBusy }: ResolvedWithLock<Data, Result, Name>,
): Promise<unknown> {
  const refusal = refusalOf(error);
  if (refusal !== undefined) onBusy?.(refusal, job);
  // A canceled job must not move to the delayed jobs, because it would run again.
  if (cancelled.aborted && (refusal !== undefined || error === cancelled.reason)) return cancelledFor(cancelled.reason);
  if (refusal === undefined || delaying === undefined || !mayPass(refusal)) return error;
  if (delaysOf(job) >= delaying.delaysMax * (job.attemptsMade + 1)) return error;
  await job.moveToDelayed(Date.now() + delayOf(delaying), jobToken);
  return new DelayedError(error instanceof Error ? error.message : undefined);
}

/** Returns the error for a canceled job. The reason of a signal can be any value, but BullMQ needs an Error. */
function cancelledFor(reason: unknown): Error {
  if (reason instanceof Error) return reason;
  return new Error("The job was canceled before it acquired its lock. Its processor was not called.", {
    cause: reason,
  });
}

/** Whether the refusal may pass without human action. A job must fail visibly if its problem needs an operator. */
function mayPass({ error }: Refusal): boolean {
  return error instanceof StoreError
    ? error.transient
    : !(error instanceof EvictionError || error instanceof ProtocolError);
}

/**
 * Returns the number of moves to the delayed jobs so far: starts that were neither failures nor stalls. Early versions
 * of BullMQ do not count stalls.
 */
function delaysOf({ attemptsStarted, attemptsMade, stalledCounter }: Job): number {
  return Math.max(0, attemptsStarted - 1 - attemptsMade - (Number(stalledCounter) || 0));
}

/** Returns a random delay in ms, so that jobs refused at the same time do not come back at the same time. */
function delayOf({ delayMs }: Delaying): number {
  return Math.round(delayMs * (0.5 + Math.random()));
}
