/** What a waiter does not know: whether a request of its claim has run, and since when the server has not answered. */
import { StoreError } from "./errors.js";

/** See the file header. One for each claim on its way. */
export class UncertainReply {
  /** True if a request may have queued this claim, or been granted, without our knowing. */
  isUncertain = false;
  #failingSinceMs: number | undefined;
  #last: StoreError | undefined;

  /** The failure that goes on; undefined while the server answers. */
  get last(): StoreError | undefined {
    return this.#failingSinceMs === undefined ? undefined : this.#last;
  }

  /** The server has answered. */
  answered(): void {
    this.#failingSinceMs = undefined;
  }

  /** A request has failed. */
  failed(error: unknown): void {
    if (error instanceof StoreError && error.mayHaveRun) this.isUncertain = true;
  }

  /** The wait goes on in spite of a failure. */
  goesOn(error: StoreError): void {
    this.#last = error;
  }

  /** How long the server has not answered by now, in ms: 0 at the first failure. */
  failingMs(nowMs: number): number {
    this.#failingSinceMs ??= nowMs;
    return nowMs - this.#failingSinceMs;
  }

  /**
   * What to tell of a failure: the last try may be known not to have run, but what matters is whether any of them may
   * have, or stands in the queue.
   */
  told(error: unknown, isQueued: boolean, lockName: string): unknown {
    const isInDoubt = this.isUncertain || isQueued;
    return error instanceof StoreError && isInDoubt ? asUncertain(error, lockName) : error;
  }
}

/** What became of the last try is known, and of one before it not. */
export function asUncertain(error: StoreError, lockName: string): StoreError {
  if (error.mayHaveRun) return error;
  const { transient, cause, resumesInMs, missingPermission } = error;
  return new StoreError(lockName, { mayHaveRun: true, transient, cause, resumesInMs, missingPermission });
}
