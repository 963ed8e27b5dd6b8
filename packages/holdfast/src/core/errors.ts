/**
 * Every error that this package throws on purpose. Check the class or `code`, never the message.
 *
 * The doc comment of each class says what the caller may assume. An invalid argument throws a TypeError or a RangeError
 * instead, and an aborted wait rejects with the signal's own reason.
 */

import type {
  BreakReason,
  Forced,
  Holder,
  OverReason,
  Pause,
  ProtocolConflict,
  ServerAnswer,
  StoreFailure,
} from "./error-messages.js";
import {
  BROKE,
  evictionMessage,
  lostMessage,
  mismatchMessage,
  pausedMessage,
  processOf,
  protocolMessage,
  quorumMessage,
  quote,
  storeMessage,
  timeoutMessage,
} from "./error-messages.js";

export type {
  BreakReason,
  Forced,
  Holder,
  LossReason,
  OverReason,
  Pause,
  ServerAnswer,
  StoreFailure,
} from "./error-messages.js";
export { AdvisedCause } from "./error-messages.js";

/**
 * Base class of all lock errors. Each class has its own `name`, which is the class name, and its own stable `code`. The
 * message is for people and may change.
 */
export abstract class LockError extends Error {
  override readonly name: string = "LockError";

  /** Stable identifier of the error class, such as `ERR_LOCK_ACQUIRE_TIMEOUT`. Compare this, not the message. */
  abstract readonly code: `ERR_LOCK_${string}`;

  /** Name of the lock. For a StoreError that does not concern a single lock, the name of the script or channel. */
  readonly lockName: string;

  constructor(lockName: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.lockName = lockName;
  }
}

/** The wait ended before the lock was granted. Nothing is held and nothing is queued; retrying is safe. */
export class AcquireTimeoutError extends LockError {
  override readonly name: string = "AcquireTimeoutError";

  readonly code = "ERR_LOCK_ACQUIRE_TIMEOUT";
  /** How long the call waited, in ms. */
  readonly waitMs: number;
  /**
   * Holder of the lock when the wait ended; undefined if the lock was free at that moment, or if its state could not be
   * read.
   */
  readonly holder: Holder | undefined;
  /**
   * True if the holder acquired the lock through this Holdfast. The holder is then either another task or the caller
   * itself.
   */
  readonly isOwn: boolean;
  /**
   * How many waiters were ahead of this caller in the queue. Undefined if the queue could not be read. Also undefined
   * if 100 or more were ahead and other callers of this process gave up at the same time, because these callers share
   * one reply, which lists only the first 100 waiters.
   */
  readonly waitersAhead: number | undefined;
  /** The pause of the lock, if the lock was paused when the wait ended. */
  readonly pause: Pause | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly waitMs: number;
      readonly holder?: Holder | undefined;
      readonly isOwn?: boolean | undefined;
      readonly waitersAhead?: number | undefined;
      readonly pause?: Pause | undefined;
      /** Why the state of the lock could not be read; undefined if there was no such error. */
      readonly cause?: unknown;
    },
    message: string = timeoutMessage(lockName, facts),
  ) {
    super(lockName, message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.waitMs = facts.waitMs;
    this.holder = facts.holder;
    this.isOwn = facts.isOwn ?? false;
    this.waitersAhead = facts.waitersAhead;
    this.pause = facts.pause;
  }

  /** Fencing token of the holder, if known. */
  get token(): number | undefined {
    return this.holder?.token;
  }
}

/**
 * The lock is paused, so it is not granted to anyone. Nothing is held and nothing is queued. Retrying is safe, but
 * fails until the pause ends. With `throughPause: true`, `acquire` waits instead.
 */
export class PausedError extends LockError {
  override readonly name: string = "PausedError";

  readonly code = "ERR_LOCK_PAUSED";
  /** Who paused the lock, as given by the caller of `pause`. */
  readonly by: string;
  /** Why the lock is paused. */
  readonly label: string;
  /** Server time at which the pause began, in ms since 1970. */
  readonly sinceAtMs: number;
  /**
   * Server time at which the pause ends by itself, in ms since 1970; undefined if it lasts until someone resumes the
   * lock.
   */
  readonly untilAtMs: number | undefined;

  constructor(lockName: string, pause: Pause) {
    super(lockName, pausedMessage(lockName, pause));
    this.by = pause.by;
    this.label = pause.label;
    this.sinceAtMs = pause.sinceAtMs;
    this.untilAtMs = pause.untilAtMs;
  }
}

/**
 * The lease ended before its holder released it. Work done since then may have overlapped with another holder's work.
 *
 * `assertHeld` also throws this error for a lease that its holder ended; then `reason` is `released` or `handed-over`.
 * The reasons `closing` and `superseded` occur only in the abort reason of a signal: the lease is still held until its
 * work ends.
 */
export class LeaseLostError extends LockError {
  override readonly name: string = "LeaseLostError";

  readonly code = "ERR_LOCK_LEASE_LOST";
  /** Why the lease is over or must end. */
  readonly reason: OverReason;
  /** Fencing token of the lease. */
  readonly token: number;
  /** Owner id of the claim behind the lease. */
  readonly owner: string;
  /** Who force-released the lock and why, if that was given and the message arrived. */
  readonly forced: Forced | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly reason: OverReason;
      readonly token: number;
      readonly owner: string;
      readonly forced?: Forced | undefined;
      /** The reason in the message; by default, the text for `reason`. */
      readonly why?: string | undefined;
    },
    note = "",
  ) {
    super(lockName, lostMessage(lockName, facts) + note);
    this.reason = facts.reason;
    this.token = facts.token;
    this.owner = facts.owner;
    this.forced = facts.forced;
  }
}

/** The wait ended before the awaited event occurred. Nothing is held and nothing is queued. */
export class WaitTimeoutError extends LockError {
  override readonly name: string = "WaitTimeoutError";

  readonly code = "ERR_LOCK_WAIT_TIMEOUT";
  /** How long the call waited, in ms. */
  readonly waitMs: number;

  constructor(lockName: string, facts: { readonly waitMs: number; readonly awaited: string; readonly now: string }) {
    super(lockName, `${quote(lockName)}: ${facts.awaited} within ${facts.waitMs} ms; ${facts.now}.`);
    this.waitMs = facts.waitMs;
  }
}

/**
 * The barrier broke for all its parties because not all of them arrived. It refuses further arrivals until it is reset.
 */
export class BrokenBarrierError extends LockError {
  override readonly name: string = "BrokenBarrierError";

  readonly code = "ERR_LOCK_BROKEN_BARRIER";
  /** The generation that broke. */
  readonly generation: number;
  /** Why the generation broke. */
  readonly reason: BreakReason;
  /**
   * The party that broke the barrier; undefined for a reset, or if the barrier broke so long ago that the server has
   * forgotten the party.
   */
  readonly by: Omit<Holder, "token" | "sinceAtMs" | "leaseLeftMs"> | undefined;

  constructor(lockName: string, facts: Pick<BrokenBarrierError, "generation" | "reason" | "by">) {
    const { generation, reason, by } = facts;
    const who = by === undefined ? "" : ` for party ${processOf(by)}`;
    super(lockName, `Generation ${generation} of the barrier ${quote(lockName)} broke: ${BROKE[reason]}${who}.`);
    this.generation = generation;
    this.reason = reason;
    this.by = by;
  }
}

/**
 * This process declares a number of permits or parties that differs from the stored number. Nothing is held and nothing
 * is queued.
 *
 * If `permits` is undefined, this process was configured with a number that was never in effect. Otherwise, it
 * requested more permits than exist, because `resize` reduced the capacity. Configure all processes with the same
 * number, or call `resize` (for a barrier, `reset`). Retrying without a change fails again.
 */
export class CapacityMismatchError extends LockError {
  override readonly name: string = "CapacityMismatchError";

  readonly code = "ERR_LOCK_CAPACITY_MISMATCH";
  /** Number of permits or parties on the server. */
  readonly capacity: number;
  /** Number that this process was configured with. */
  readonly declared: number;
  /** Number of permits that were requested, if that number is the cause. */
  readonly permits: number | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly capacity: number;
      readonly declared: number;
      readonly permits?: number | undefined;
      /** What is counted. @default "permits" */
      readonly counted?: "permits" | "parties" | undefined;
    },
  ) {
    super(lockName, mismatchMessage(lockName, facts));
    this.capacity = facts.capacity;
    this.declared = facts.declared;
    this.permits = facts.permits;
  }
}

/**
 * The server did not reply in time, or replied with an error. Unless `mayHaveRun` is false, the request may have taken
 * effect: treat the outcome as unknown.
 */
export class StoreError extends LockError {
  override readonly name: string = "StoreError";

  readonly code: "ERR_LOCK_STORE" | "ERR_LOCK_QUORUM" = "ERR_LOCK_STORE";
  /** False only if it is certain that the request changed nothing. */
  readonly mayHaveRun: boolean;
  /** True if the same call may succeed later; false if it will not. */
  readonly transient: boolean;
  /**
   * Milliseconds from the reply until the server may grant locks again, if it refused because it took over from another
   * server or was restarted. For a `QuorumError`: milliseconds until a majority of the servers can grant again, if too
   * many of them refused for that reason. Undefined for every other failure.
   */
  readonly resumesInMs: number | undefined;
  /**
   * The permission that the Redis user lacks, as the ACL SETUSER rule that would grant it, such as `+zadd`. Contains
   * several rules if the server does not say which one is missing. Undefined for every other failure.
   */
  readonly missingPermission: string | undefined;

  constructor(lockName: string, failure: StoreFailure, message: string = storeMessage(lockName, failure)) {
    super(lockName, message, { cause: failure.cause });
    this.mayHaveRun = failure.mayHaveRun;
    this.transient = failure.transient;
    this.resumesInMs = failure.resumesInMs;
    this.missingPermission = failure.missingPermission;
  }
}

/**
 * No majority of the independent servers replied in time, or the replies did not decide the outcome. Grants of
 * individual servers are released. On servers that cannot be reached, they expire after at most `leaseMs`. `inspect`
 * also throws this error if a majority replied but the other servers decide whether the lock is held.
 */
export class QuorumError extends StoreError {
  override readonly name: string = "QuorumError";

  override readonly code = "ERR_LOCK_QUORUM";
  /** Each server's answer, in the order in which the servers were passed to `createHoldfast`. */
  readonly answers: readonly ServerAnswer[];

  constructor(
    lockName: string,
    facts: Pick<QuorumError, "answers" | "mayHaveRun" | "transient"> & {
      /** The reason in the message; by default, that no majority of the servers replied. */
      readonly why?: string | undefined;
    },
  ) {
    const errors = facts.answers.map(({ error }) => error).filter((error) => error !== undefined);
    const forbidden = errors.find((error) => error instanceof StoreError && error.missingPermission !== undefined);
    const missingPermission = forbidden instanceof StoreError ? forbidden.missingPermission : undefined;
    const resumesInMs = majorityResumesInMs(facts.answers);
    super(lockName, { ...facts, cause: errors[0], missingPermission, resumesInMs }, quorumMessage(lockName, facts));
    this.answers = facts.answers;
  }
}

/**
 * Milliseconds until a majority of the servers can grant again. Undefined if those that are not in their quiet time
 * already form a majority.
 */
function majorityResumesInMs(answers: readonly ServerAnswer[]): number | undefined {
  const restsMs = answers.flatMap(({ error }) => {
    return error instanceof StoreError && error.resumesInMs !== undefined ? [error.resumesInMs] : [];
  });
  const lacking = Math.floor(answers.length / 2) + 1 - (answers.length - restsMs.length);
  return lacking > 0 ? restsMs.toSorted((one, other) => one - other)[lacking - 1] : undefined;
}

/** This client, server or kind of lock does not support the request. Nothing was done; retrying does not help. */
export class UnsupportedError extends LockError {
  override readonly name: string = "UnsupportedError";

  readonly code = "ERR_LOCK_UNSUPPORTED";
}

/**
 * The server may evict locks while they are held, so Holdfast refuses to use it. Nothing is held. The next acquire
 * checks the server again.
 */
export class EvictionError extends LockError {
  override readonly name: string = "EvictionError";

  readonly code = "ERR_LOCK_EVICTION";
  /** The server's `maxmemory-policy`. */
  readonly policy: string;
  /** The server's `maxmemory`, in bytes. */
  readonly maxmemoryBytes: number;

  constructor(lockName: string, facts: { readonly policy: string; readonly maxmemoryBytes: number }) {
    super(lockName, evictionMessage(lockName, facts));
    this.policy = facts.policy;
    this.maxmemoryBytes = facts.maxmemoryBytes;
  }
}

/**
 * Clients with a different major version of the protocol use the same prefix. The two versions do not see each other's
 * locks, so Holdfast refuses to acquire locks. Nothing is held. The next acquire checks again.
 */
export class ProtocolError extends LockError {
  override readonly name: string = "ProtocolError";

  readonly code = "ERR_LOCK_PROTOCOL";
  /** Version of the protocol that this client uses. */
  readonly protocol: number;
  /** Version of the protocol that the other clients use. */
  readonly otherProtocol: number;
  /** Version of this library. */
  readonly version: string;
  /** Version of the library that uses the other protocol. */
  readonly otherVersion: string;
  /** Client id of the client that was last seen using the other protocol. */
  readonly clientId: string;
  /** Host name of that client; undefined if its record is gone. */
  readonly host: string | undefined;
  /** Process id of that client on its host; undefined if its record is gone. */
  readonly pid: number | undefined;
  /** Milliseconds until the other protocol counts as unused, provided that no client uses it again. */
  readonly unusedInMs: number;

  constructor(lockName: string, facts: ProtocolConflict) {
    super(lockName, protocolMessage(lockName, facts));
    this.protocol = facts.protocol;
    this.otherProtocol = facts.otherProtocol;
    this.version = facts.version;
    this.otherVersion = facts.otherVersion;
    this.clientId = facts.clientId;
    this.host = facts.host;
    this.pid = facts.pid;
    this.unusedInMs = facts.unusedInMs;
  }
}

/** This Holdfast was closed. The rejected call acquired nothing. */
export class ClosedError extends LockError {
  override readonly name: string = "ClosedError";

  readonly code = "ERR_LOCK_CLOSED";

  constructor(lockName: string) {
    super(lockName, `This Holdfast was closed, so the call for ${quote(lockName)} was rejected and acquired nothing.`);
  }
}

/**
 * Returns the StoreError for a request whose outcome is unknown.
 *
 * @param why  what happened; becomes the message of `cause`
 */
export function unknownOutcome(lockName: string, why: string): StoreError {
  return new StoreError(lockName, { mayHaveRun: true, transient: true, cause: new Error(why) });
}

/** Returns the error for a grant whose reply arrived too late. */
export function lateGrant(lockName: string): StoreError {
  return unknownOutcome(lockName, "the reply arrived after the granted lease had ended");
}

/** Returns a copy of the error with the name of the lock that the request was about. */
export function namedAfter(lockName: string, error: StoreError, mayHaveRun: boolean = error.mayHaveRun): StoreError {
  const { transient, cause, resumesInMs, missingPermission } = error;
  return new StoreError(lockName, { mayHaveRun, transient, cause, resumesInMs, missingPermission });
}

/**
 * Returns the error with `mayHaveRun` set. Used if the last attempt of a request did not run, but an earlier one may
 * have.
 */
export function asUncertain(error: StoreError, lockName: string): StoreError {
  return error.mayHaveRun ? error : namedAfter(lockName, error, true);
}

/**
 * Emits a process warning for a condition that does not prevent locking but needs action. docs/warnings.md explains
 * each code.
 */
export function warn(code: `HOLDFAST_${string}`, message: string, detail: string): void {
  process.emitWarning(message, { type: "HoldfastWarning", code, detail });
}
