import { DelayedError, type Job, type Processor } from "bullmq";
import {
  type AcquireOptions,
  EvictionError,
  type Holdfast,
  type Lease,
  ProtocolError,
  StoreError,
} from "../../index.js";
import { anyInternalsOf, show } from "../../internal.js";
import { type Refusal, refusalOf } from "../../recipes/refusal.js";
import { lockNamed, runUnder } from "../../recipes/under-lock.js";
import { type Delaying, type ResolvedWithLock, resolveWithLock, type WithLockOptions } from "./options.js";

/** The lease of a job; undefined for a job without a key, if there are such jobs. */
export type LeaseOf<Key extends string | undefined> = Lease | Extract<Key, undefined>;

/**
 * A processor as BullMQ knows it, and the lease as its fourth argument.
 *
 * `signal` aborts when the job is cancelled, or when the lease is lost.
 */
export type LockedProcessor<Data, Result, Name extends string, Key extends string | undefined> = (
  job: Job<Data, Result, Name>,
  jobToken: string | undefined,
  signal: AbortSignal,
  lease: LeaseOf<Key>,
) => Promise<Result>;

/**
 * A processor that runs under a lock: of all jobs with one key, whatever queue they come from, one at a time.
 *
 * A job that finds its lock held is moved to the delayed jobs and comes again, so that it takes no worker's time; see `whenBusy`.
 * Such a move counts as a start of the job (`attemptsStarted`) and not as an attempt (`attemptsMade`).
 *
 * Promised is that two processors never both have a valid lease of one key. **Not promised is that a job runs once**: BullMQ runs one
 * again whose worker it has lost sight of, after the lock is free. Give `lease.token` to what is written, or use `once`.
 *
 * @param holdfast   what `createHoldfast` returned
 * @param keyOf      the name of the lock, 1 to 512 bytes; undefined for a job that needs none
 * @param processor  what it throws, `UnrecoverableError` and the like too, is passed on untouched. A function: a path or URL of a file, which
 *                   BullMQ runs in a process of its own, is refused
 * @returns what `new Worker` takes. It throws, as the failure of an attempt:
 *          `WorkLostError`, a LeaseLostError, if the processor ended after its lease; `AcquireTimeoutError` or `PausedError`, which say who is in the
 *          way, if `whenBusy` says to wait no longer; `StoreError` and `EvictionError`; `ClosedError` if the Holdfast was closed before the worker
 * @throws TypeError, RangeError  a wrong argument
 */
export function withLock<
  // biome-ignore lint/suspicious/noExplicitAny: as BullMQ's own types, where nobody says what the data are
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
  if (typeof keyOf !== "function") throw new TypeError(`keyOf must be a function of a job; got ${show(keyOf)}`);
  if (typeof processor !== "function") {
    throw new TypeError(
      `processor must be a function: a sandboxed processor runs in a separate process, which cannot receive a lease; got ${show(processor)}`,
    );
  }
  const resolved = resolveWithLock(options);
  // BullMQ makes a signal for processors that name three arguments.
  return async (job, jobToken, signal) => {
    const cancelled = signal ?? new AbortController().signal;
    const key: string | undefined = keyOf(job);
    // A key that is not there is of the type that it is.
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

/** Which job has it, for whoever meets it: at most 256 bytes, of four each. */
function labelOf({ queueName, id }: Pick<Job, "queueName" | "id">): string {
  return Array.from(`${queueName}:${id}`).slice(0, 64).join("");
}

/** What to throw for a job that was not run. */
async function refused<Data, Result, Name extends string>(
  error: unknown,
  job: Job<Data, Result, Name>,
  jobToken: string | undefined,
  cancelled: AbortSignal,
  { delaying, onBusy }: ResolvedWithLock<Data, Result, Name>,
): Promise<unknown> {
  const refusal = refusalOf(error);
  if (refusal !== undefined) onBusy?.(refusal, job);
  // A job that was sent back would come again, whoever has cancelled it meanwhile.
  if (cancelled.aborted && (refusal !== undefined || error === cancelled.reason)) return cancelledFor(cancelled.reason);
  if (refusal === undefined || delaying === undefined || !mayPass(refusal)) return error;
  if (delaysOf(job) >= delaying.delaysMax * (job.attemptsMade + 1)) return error;
  await job.moveToDelayed(Date.now() + delayOf(delaying), jobToken);
  return new DelayedError(error instanceof Error ? error.message : undefined);
}

/** A job is cancelled with any words, and BullMQ makes a failure of nothing but errors. */
function cancelledFor(reason: unknown): Error {
  if (reason instanceof Error) return reason;
  return new Error("The job was cancelled while it waited for its lock.", { cause: reason });
}

/** Whether it may be otherwise later without anybody's doing; what needs somebody has to be seen. */
function mayPass({ error }: Refusal): boolean {
  return error instanceof StoreError
    ? error.transient
    : !(error instanceof EvictionError || error instanceof ProtocolError);
}

/** How often the job was sent back so far: begun, and neither failed nor lost sight of, which early versions do not count. */
function delaysOf({ attemptsStarted, attemptsMade, stalledCounter }: Job): number {
  return Math.max(0, attemptsStarted - 1 - attemptsMade - (Number(stalledCounter) || 0));
}

/** Spread, so that jobs that were refused together do not come again together. */
function delayOf({ delayMs }: Delaying): number {
  return Math.round(delayMs * (0.5 + Math.random()));
}
