/**
 * Every error this package throws on purpose. Test the class or `code`, never the message.
 *
 * Each class says in one sentence what the caller may assume. A wrong argument is a TypeError or a
 * RangeError instead, and an aborted wait rejects with the signal's own reason.
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

/** Base of all lock errors. `code` is stable; the message is for people. */
export abstract class LockError extends Error {
  override readonly name: string = "LockError";

  abstract readonly code: `ERR_LOCK_${string}`;

  /** The lock the error is about; for a StoreError that concerns no single lock, the script or channel. */
  readonly lockName: string;

  constructor(lockName: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.lockName = lockName;
  }
}

/** The wait ended before the lock was free. Nothing is held and nothing is queued; trying again is safe. */
export class AcquireTimeoutError extends LockError {
  override readonly name: string = "AcquireTimeoutError";

  readonly code = "ERR_LOCK_ACQUIRE_TIMEOUT";
  readonly waitMs: number;
  /** Who held it when the wait ended; undefined if it was free just then, or the server did not say. */
  readonly holder: Holder | undefined;
  /**
   * True if `holder` is a lease of this very Holdfast, whether or not the caller has it: only then can a caller have
   * waited for itself.
   */
  readonly isOwn: boolean;
  /**
   * How many stood before this caller in the queue. Undefined if the server did not say, or if 100 or more stood before it and other
   * callers of this process gave up at the same time: they share one answer, which names the first 100.
   */
  readonly waitersAhead: number | undefined;
  /** The pause that it waited through, if the lock was paused when the wait ended. */
  readonly pause: Pause | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly waitMs: number;
      readonly holder?: Holder | undefined;
      readonly isOwn?: boolean | undefined;
      readonly waitersAhead?: number | undefined;
      readonly pause?: Pause | undefined;
      /** Why the server did not say who holds it; undefined if it did. */
      readonly cause?: unknown;
    },
  ) {
    super(lockName, timeoutMessage(lockName, facts), facts.cause === undefined ? undefined : { cause: facts.cause });
    this.waitMs = facts.waitMs;
    this.holder = facts.holder;
    this.isOwn = facts.isOwn ?? false;
    this.waitersAhead = facts.waitersAhead;
    this.pause = facts.pause;
  }

  /** Fencing token of the holder, if it is known. */
  get token(): number | undefined {
    return this.holder?.token;
  }
}

/**
 * Somebody has paused the lock, so nobody is granted now. Nothing is held and nothing is queued; trying again is safe, and
 * pointless before the pause ends. With `throughPause: true` an acquire waits instead.
 */
export class PausedError extends LockError {
  override readonly name: string = "PausedError";

  readonly code = "ERR_LOCK_PAUSED";
  /** Who paused it, in their own words. */
  readonly by: string;
  /** Why. */
  readonly label: string;
  /** When it began, by the server's clock, in ms since 1970. */
  readonly sinceAtMs: number;
  /** When it ends by itself, by the server's clock, in ms since 1970; undefined if somebody has to resume. */
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
 * The lease is over, and its holder did not end it. Work done since may have overlapped with another holder's.
 *
 * `assertHeld` also throws it for a lease that its holder did end: then `reason` is `released` or `handed-over`. With
 * `closing` it is the reason of a signal alone: the lease is still held, until its work ends.
 */
export class LeaseLostError extends LockError {
  override readonly name: string = "LeaseLostError";

  readonly code = "ERR_LOCK_LEASE_LOST";
  readonly reason: OverReason;
  readonly token: number;
  readonly owner: string;
  /** Who released it by force and why, if that was said and heard. */
  readonly forced: Forced | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly reason: OverReason;
      readonly token: number;
      readonly owner: string;
      readonly forced?: Forced | undefined;
    },
  ) {
    super(lockName, lostMessage(lockName, facts));
    this.reason = facts.reason;
    this.token = facts.token;
    this.owner = facts.owner;
    this.forced = facts.forced;
  }
}

/** The wait ended before what it waited for came about. Nothing is held, and nothing waits any more. */
export class WaitTimeoutError extends LockError {
  override readonly name: string = "WaitTimeoutError";

  readonly code = "ERR_LOCK_WAIT_TIMEOUT";
  readonly waitMs: number;

  constructor(lockName: string, facts: { readonly waitMs: number; readonly awaited: string; readonly now: string }) {
    super(lockName, `${quote(lockName)}: ${facts.awaited} did not come within ${facts.waitMs} ms; ${facts.now}.`);
    this.waitMs = facts.waitMs;
  }
}

/** The barrier broke, for all its parties: not all of them came. Those who arrive are refused until somebody resets it. */
export class BrokenBarrierError extends LockError {
  override readonly name: string = "BrokenBarrierError";

  readonly code = "ERR_LOCK_BROKEN_BARRIER";
  /** The generation that broke. */
  readonly generation: number;
  readonly reason: BreakReason;
  /** Whose arrival broke it; undefined for a reset, and when it broke so long ago that it is forgotten. */
  readonly by: Omit<Holder, "token" | "sinceAtMs" | "leaseLeftMs"> | undefined;

  constructor(lockName: string, facts: Pick<BrokenBarrierError, "generation" | "reason" | "by">) {
    const { generation, reason, by } = facts;
    const who = by === undefined ? "" : ` of ${processOf(by)}`;
    super(lockName, `Generation ${generation} of the barrier ${quote(lockName)} broke: ${BROKE[reason]}${who}.`);
    this.generation = generation;
    this.reason = reason;
    this.by = by;
  }
}

/**
 * This process counts on another number of permits, or of parties, than the server has. Nothing is held and nothing
 * is queued.
 *
 * Either it was configured with a number that never was in force (`permits` is undefined), or
 * it asks for more `permits` than there are since somebody made them fewer. Configure all processes alike, or
 * `resize`; asking again as before will not help.
 */
export class CapacityMismatchError extends LockError {
  override readonly name: string = "CapacityMismatchError";

  readonly code = "ERR_LOCK_CAPACITY_MISMATCH";
  /** How many permits, or parties, there are. */
  readonly capacity: number;
  /** How many this process was configured with. */
  readonly declared: number;
  /** How many it asked for, if that is the trouble. */
  readonly permits: number | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly capacity: number;
      readonly declared: number;
      readonly permits?: number | undefined;
      /** What there are so many of; permits if it is not said. */
      readonly counted?: "permits" | "parties" | undefined;
    },
  ) {
    super(lockName, mismatchMessage(lockName, facts));
    this.capacity = facts.capacity;
    this.declared = facts.declared;
    this.permits = facts.permits;
  }
}

/** The server did not answer in time, or answered with an error. Unless `mayHaveRun` is false, treat it as "maybe". */
export class StoreError extends LockError {
  override readonly name: string = "StoreError";

  readonly code: "ERR_LOCK_STORE" | "ERR_LOCK_QUORUM" = "ERR_LOCK_STORE";
  readonly mayHaveRun: boolean;
  readonly transient: boolean;
  /**
   * In how many ms the server may grant locks again, counted from when it said so, if it refused because it took over
   * from another or was restarted; undefined for every other failure. Of a `QuorumError`: in how many ms so many servers may
   * that a majority is not out of the question, if too many of them refused for that reason.
   */
  readonly resumesInMs: number | undefined;
  /**
   * What the Redis user may not do, as the rule of ACL SETUSER that would permit it, such as `+zadd`; several, where the server
   * leaves open which. Undefined for every other failure.
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
 * Of several independent servers no majority answered in time. What single servers have granted is given back, at once
 * where they can be reached; elsewhere it ends by itself after `leaseMs` at the latest.
 */
export class QuorumError extends StoreError {
  override readonly name: string = "QuorumError";

  override readonly code = "ERR_LOCK_QUORUM";
  /** What each server said, in the order in which they were given to `createHoldfast`. */
  readonly answers: readonly ServerAnswer[];

  constructor(
    lockName: string,
    facts: Pick<QuorumError, "answers" | "mayHaveRun" | "transient"> & {
      /** What did not come about, if not a majority of answers. */
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

/** When a majority may grant again; undefined if it is not the grace of servers that keeps one from it. */
function majorityResumesInMs(answers: readonly ServerAnswer[]): number | undefined {
  const restsMs = answers.flatMap(({ error }) => {
    return error instanceof StoreError && error.resumesInMs !== undefined ? [error.resumesInMs] : [];
  });
  const lacking = Math.floor(answers.length / 2) + 1 - (answers.length - restsMs.length);
  return lacking > 0 ? restsMs.toSorted((one, other) => one - other)[lacking - 1] : undefined;
}

/** This client, server or kind cannot do what was asked, and never will. Nothing was done. */
export class UnsupportedError extends LockError {
  override readonly name: string = "UnsupportedError";

  readonly code = "ERR_LOCK_UNSUPPORTED";
}

/**
 * The server may evict locks while they are held, so nothing is acquired from it. Nothing is held; the server is asked
 * again by the next acquire.
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
 * Clients of another major version of the protocol are in use under the same prefix. Neither version sees the locks of the
 * other, so nothing is acquired. Nothing is held; the next acquire asks again.
 */
export class ProtocolError extends LockError {
  override readonly name: string = "ProtocolError";

  readonly code = "ERR_LOCK_PROTOCOL";
  /** Version of the protocol that this client speaks. */
  readonly protocol: number;
  /** Version of the protocol that is in use. */
  readonly otherProtocol: number;
  /** Version of this library. */
  readonly version: string;
  /** Version of the library that uses the other protocol. */
  readonly otherVersion: string;
  /** Id of the client that was last seen using the other protocol. */
  readonly clientId: string;
  /** Host name of that client; undefined if its record is gone. */
  readonly host: string | undefined;
  /** Process id of that client on its host. */
  readonly pid: number | undefined;
  /** After how many ms the other protocol counts as unused, if no client of it comes again. */
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

/** This Holdfast was closed. Nothing is held by the call that was refused, and it has asked the server for nothing more. */
export class ClosedError extends LockError {
  override readonly name: string = "ClosedError";

  readonly code = "ERR_LOCK_CLOSED";

  constructor(lockName: string) {
    super(lockName, `This Holdfast has been closed, so the call about ${quote(lockName)} holds nothing.`);
  }
}

/** What became of the last try is known, and of one before it not. */
export function asUncertain(error: StoreError, lockName: string): StoreError {
  if (error.mayHaveRun) return error;
  const { transient, cause, resumesInMs, missingPermission } = error;
  return new StoreError(lockName, { mayHaveRun: true, transient, cause, resumesInMs, missingPermission });
}
