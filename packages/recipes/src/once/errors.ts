/** The errors of `once`. */
import { type Holder, LockError } from "holdfast";
import { instant, quote } from "holdfast/internal";
import type { KeptFailure } from "../failure.js";
import { partsOf } from "../names.js";
import { WorkLostError } from "../under-lock.js";
import { UnrecordedError } from "../unrecorded.js";

/** The key of a call and, if it has one, its scope. */
function called(name: string): string {
  const { key, scope } = partsOf(name) ?? { key: name };
  return scope === undefined ? quote(key) : `${quote(key)} in the scope ${quote(scope)}`;
}

const STATES: Readonly<Record<string, string>> = {
  running: "still running",
  bare: "done, without a kept result",
  released: "released, so that it can run again",
};

/**
 * Another caller is still running the work, and this call has stopped waiting for it. Nothing was run here; calling
 * again is safe.
 */
export class OnceRunningError extends LockError {
  override readonly name: string = "OnceRunningError";

  readonly code = "ERR_LOCK_ONCE_RUNNING";
  /** The caller that runs the work; undefined if it has just ended or the server did not say. */
  readonly holder: Holder | undefined;

  constructor(
    key: string,
    facts: { readonly waitMs: number; readonly holder: Holder | undefined; readonly cause?: unknown },
  ) {
    const { waitMs, holder, cause } = facts;
    const who =
      holder === undefined
        ? ""
        : ` in ${holder.host === undefined ? holder.owner : `pid ${holder.pid} on ${holder.host}`}`;
    const since = holder?.sinceAtMs === undefined ? "" : ` (started at ${instant(holder.sinceAtMs)})`;
    const waited = waitMs === 0 ? "" : ` after a wait of ${waitMs} ms`;
    super(key, `${called(key)} is still running${who}${since}${waited}. Nothing ran here, so calling again is safe.`, {
      cause,
    });
    this.holder = holder;
  }
}

/** The key belongs to a call with a different fingerprint. Nothing was run; calling again does not help. */
export class OnceMismatchError extends LockError {
  override readonly name: string = "OnceMismatchError";

  readonly code = "ERR_LOCK_ONCE_MISMATCH";
  /** State of the call that the key belongs to: `running`, `done`, `failed`, `bare`, `blocked` or `released`. */
  readonly state: string;

  constructor(key: string, facts: { readonly state: string; readonly sinceMs: number }) {
    const since = instant(facts.sinceMs);
    super(
      key,
      `${called(key)} was started at ${since} with a different fingerprint, and is ${STATES[facts.state] ?? facts.state}; this call did not run the work. Use a new key for a different request.`,
    );
    this.state = facts.state;
  }
}

/** The outcome of the call is unknown. It does not run again until you report the outcome with `resolveOnce`. */
export class OnceBlockedError extends LockError {
  override readonly name: string = "OnceBlockedError";

  readonly code = "ERR_LOCK_ONCE_BLOCKED";
  /** Number of the attempt whose outcome is unknown. */
  readonly attempt: number;
  /** Server time at which the call was blocked. */
  readonly blockedAt: Date;
  /** Name and message of the error that blocked the call, or a note that the outcome is unknown. */
  readonly reason: string;

  constructor(key: string, facts: { readonly attempt: number; readonly blockedMs: number; readonly reason: string }) {
    const { attempt, blockedMs, reason } = facts;
    super(
      key,
      `${called(key)} has been blocked since ${instant(blockedMs)}, because the outcome of attempt ${attempt} is unknown (${quote(reason)}); this call did not run the work. Find out whether attempt ${attempt} took effect, then call resolveOnce.`,
    );
    this.attempt = attempt;
    this.blockedAt = new Date(blockedMs);
    this.reason = reason;
  }
}

/**
 * An earlier attempt failed, and its failure was kept because `after` returned `"keep"`. The work was not run again.
 */
export class OnceFailedError extends LockError {
  override readonly name: string = "OnceFailedError";

  readonly code = "ERR_LOCK_ONCE_FAILED";
  /** The kept error: its name, its message and its own enumerable properties. */
  readonly failure: KeptFailure;

  constructor(key: string, failure: KeptFailure) {
    super(
      key,
      `${called(key)} was run before and failed with ${quote(failure.name)}: ${quote(failure.message)}; it was not run again.`,
    );
    this.failure = failure;
  }
}

/**
 * The call is done, but its value was not kept: it was too large or could not be encoded. The call was not run again.
 */
export class OnceUnavailableError extends LockError {
  override readonly name: string = "OnceUnavailableError";

  readonly code = "ERR_LOCK_ONCE_UNAVAILABLE";

  constructor(key: string, facts: { readonly firstMs: number }) {
    const first = instant(facts.firstMs);
    super(
      key,
      `${called(key)} is done (first attempt at ${first}), but its result was not kept, because it was too large or could not be encoded. The work did not run again.`,
    );
  }
}

/** The work ended after another attempt had taken over the call. Its result is in `value` and was not recorded. */
export class OnceLostError extends WorkLostError {
  override readonly name: string = "OnceLostError";
}

/**
 * The work ended, but the server did not reply. The work's value may be recorded, or the next caller may run the call
 * again.
 */
export class OnceUnrecordedError extends UnrecordedError {
  override readonly name: string = "OnceUnrecordedError";
}
