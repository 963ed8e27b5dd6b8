/**
 * Every error this package throws on purpose. Test the class or `code`, never the message.
 *
 * Each class says in one sentence what the caller may assume. A wrong argument is a TypeError or a
 * RangeError instead, and an aborted wait rejects with the signal's own reason.
 */

/** Base of all lock errors. `code` is stable; the message is for people. */
export abstract class LockError extends Error {
  abstract readonly code: `ERR_LOCK_${string}`;

  /** The lock the error is about; for a StoreError that concerns no single lock, the script or channel. */
  readonly lockName: string;

  constructor(lockName: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.lockName = lockName;
  }
}

/** Who holds a lock, as far as the server and the holder's own record tell. */
export interface Holder {
  /** Id of the claim, `<clientId>/<number>` and, with a label, `/<label>`; or what a foreign client wrote. */
  readonly owner: string;
  /** The `label` option of the holder's acquire; undefined when it gave none or is not a Holdfast client. */
  readonly label: string | undefined;
  /** Host name of the holder's process; undefined when its record is gone. */
  readonly host: string | undefined;
  /** Process id of the holder on that host. */
  readonly pid: number | undefined;
  /** The `clientName` option of the holder. */
  readonly clientName: string | undefined;
  /** Fencing token of the present grant; undefined for a foreign client. */
  readonly token: number | undefined;
  /** Time of the grant by the server's clock, in ms since 1970; undefined for a foreign client. */
  readonly sinceAtMs: number | undefined;
  /** What is left of the lease on the server, in ms; Infinity for a foreign key without expiry. */
  readonly leaseLeftMs: number;
}

/** The wait ended before the lock was free. Nothing is held and nothing is queued; trying again is safe. */
export class AcquireTimeoutError extends LockError {
  readonly code = "ERR_LOCK_ACQUIRE_TIMEOUT";
  readonly waitMs: number;
  /** Who held it when the wait ended; undefined if it was free just then, or the server did not say. */
  readonly holder: Holder | undefined;
  /** How many stood before this caller in the queue; undefined if it did not queue or the server did not say. */
  readonly waitersAhead: number | undefined;

  constructor(
    lockName: string,
    facts: {
      readonly waitMs: number;
      readonly holder?: Holder | undefined;
      readonly waitersAhead?: number | undefined;
    },
  ) {
    super(lockName, timeoutMessage(lockName, facts));
    this.waitMs = facts.waitMs;
    this.holder = facts.holder;
    this.waitersAhead = facts.waitersAhead;
  }

  /** Fencing token of the holder, if it is known. */
  get token(): number | undefined {
    return this.holder?.token;
  }
}

/**
 * Why a lease ended before it was released.
 *
 * - `expired`: its validity ran out before a renewal was confirmed; someone else may hold the lock since then
 * - `force-released`: somebody released it by force
 * - `server-lost`: the server no longer held it for us although its time was not over: memory loss, failover, a foreign
 *   DEL, or a forced release whose message did not arrive
 * - `max-hold`: the caller's own `maxHoldMs` was reached, so the lease is no longer renewed
 * - `closed`: `close()` of the Holdfast gave it back while it was held
 */
export type LossReason = "expired" | "force-released" | "server-lost" | "max-hold" | "closed";

/**
 * The lease is over, and its holder did not end it. Work done since may have overlapped with another holder's.
 *
 * `assertHeld` also throws it for a lease that its holder did end: then `reason` is `released` or `handed-over`.
 */
export class LeaseLostError extends LockError {
  readonly code = "ERR_LOCK_LEASE_LOST";
  readonly reason: LossReason | "released" | "handed-over";
  readonly token: number;
  readonly owner: string;

  constructor(
    lockName: string,
    facts: { readonly reason: LeaseLostError["reason"]; readonly token: number; readonly owner: string },
  ) {
    super(lockName, `The lease on ${quote(lockName)} (token ${facts.token}) is over: ${OVER[facts.reason]}.`);
    this.reason = facts.reason;
    this.token = facts.token;
    this.owner = facts.owner;
  }
}

const OVER: Readonly<Record<LeaseLostError["reason"], string>> = {
  expired: "it was not renewed in time, so another holder may have been granted meanwhile",
  "force-released": "it was released by force, so another holder may have been granted at once",
  "server-lost":
    "the server no longer holds it for us although its time was not over, so another holder may have been granted",
  "max-hold":
    "maxHoldMs was reached and it is no longer renewed, so another holder is granted when its rest has run out",
  closed: "this Holdfast was closed and gave it back, so another holder may have been granted at once",
  released: "it was released by its holder, so another holder may have been granted at once",
  "handed-over": "it was exported for another process, which may hold it now",
};

/** The wait ended before what it waited for came about. Nothing is held, and nothing waits any more. */
export class WaitTimeoutError extends LockError {
  readonly code = "ERR_LOCK_WAIT_TIMEOUT";
  readonly waitMs: number;

  constructor(lockName: string, facts: { readonly waitMs: number; readonly awaited: string; readonly now: string }) {
    super(lockName, `${quote(lockName)}: ${facts.awaited} did not come within ${facts.waitMs} ms; ${facts.now}.`);
    this.waitMs = facts.waitMs;
  }
}

/**
 * Why a generation of a barrier broke.
 *
 * - `lease-ended`: a party stopped renewing its arrival, as when its process died or stood still
 * - `timed-out`, `aborted`: a party's `waitMs` ended, or its signal aborted
 * - `left`: a party gave up for another reason, such as the close of its Holdfast
 * - `reset`: somebody called `reset`
 */
export type BreakReason = "lease-ended" | "timed-out" | "aborted" | "left" | "reset";

/** The barrier broke, for all its parties: not all of them came. Those who arrive are refused until somebody resets it. */
export class BrokenBarrierError extends LockError {
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

const BROKE: Readonly<Record<BreakReason, string>> = {
  "lease-ended": "the lease ended",
  "timed-out": "the wait timed out",
  aborted: "the wait was aborted",
  left: "the wait was given up",
  reset: "it was reset",
};

/**
 * This process counts on another number of permits, or of parties, than the server has. Nothing is held and nothing
 * is queued.
 *
 * Either it was configured with a number that is neither the present nor the first one (`permits` is undefined), or
 * it asks for more `permits` than there are since somebody made them fewer. Configure all processes alike, or
 * `resize`; asking again as before will not help.
 */
export class CapacityMismatchError extends LockError {
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
      readonly counted?: "permits" | "parties";
    },
  ) {
    super(lockName, mismatchMessage(lockName, facts));
    this.capacity = facts.capacity;
    this.declared = facts.declared;
    this.permits = facts.permits;
  }
}

/** What a store knows about a failed call. */
export interface StoreFailure {
  /** False only if it is certain that the script changed nothing. */
  readonly mayHaveRun: boolean;
  /** True if the same call may succeed later (timeout, lost connection, server loading); false if it will not. */
  readonly transient: boolean;
  /** The client library's error, or a sentence. */
  readonly cause: unknown;
}

/** The server did not answer in time, or answered with an error. Unless `mayHaveRun` is false, treat it as "maybe". */
export class StoreError extends LockError {
  readonly code = "ERR_LOCK_STORE";
  readonly mayHaveRun: boolean;
  readonly transient: boolean;

  constructor(lockName: string, failure: StoreFailure) {
    super(lockName, storeMessage(lockName, failure), { cause: failure.cause });
    this.mayHaveRun = failure.mayHaveRun;
    this.transient = failure.transient;
  }
}

/** This client, server or kind cannot do what was asked, and never will. Nothing was done. */
export class UnsupportedError extends LockError {
  readonly code = "ERR_LOCK_UNSUPPORTED";
}

/** This Holdfast was closed. Nothing is held by the call that was refused. */
export class ClosedError extends LockError {
  readonly code = "ERR_LOCK_CLOSED";

  constructor(lockName: string) {
    super(lockName, `${quote(lockName)} was not acquired: this Holdfast has been closed.`);
  }
}

function timeoutMessage(
  lockName: string,
  { waitMs, holder, waitersAhead }: { waitMs: number; holder?: Holder | undefined; waitersAhead?: number | undefined },
): string {
  const waited = waitMs === 0 ? "at once" : `within ${waitMs} ms`;
  const ahead = waitersAhead ? `, with ${waitersAhead} waiting ahead` : "";
  return `${quote(lockName)} was not acquired ${waited}${describe(holder)}${ahead}; nothing is held, and trying again is safe.`;
}

function describe(holder: Holder | undefined): string {
  if (holder === undefined) return "";
  const process = processOf(holder);
  const label = holder.label === undefined ? "" : ` for ${quote(holder.label)}`;
  const since = holder.sinceAtMs === undefined ? "" : ` since ${new Date(holder.sinceAtMs).toISOString()}`;
  const token = holder.token === undefined ? "" : `, token ${holder.token}`;
  const { leaseLeftMs } = holder;
  const end = leaseLeftMs === Infinity ? "without end" : `lease ends in ${Math.ceil(leaseLeftMs)} ms`;
  return `: held by ${process}${label}${since}${token}, ${end}`;
}

function processOf({ owner, host, pid }: Pick<Holder, "owner" | "host" | "pid">): string {
  // A foreign client may have written anything for its owner, and anybody may write a record.
  return host === undefined ? oneLine(owner) : `${oneLine(owner)} (pid ${pid} on ${oneLine(host)})`;
}

function mismatchMessage(
  lockName: string,
  {
    capacity,
    declared,
    permits,
    counted = "permits",
  }: {
    capacity: number;
    declared: number;
    permits?: number | undefined;
    counted?: "permits" | "parties" | undefined;
  },
): string {
  const wanted =
    permits === undefined
      ? `this process declares ${declared}`
      : `${permits} were asked for at once, of ${declared} declared`;
  return `${quote(lockName)} has ${capacity} ${counted}, but ${wanted}; nothing is held. Declare the same number everywhere, or ${counted === "permits" ? "resize" : "reset"}.`;
}

function storeMessage(lockName: string, { mayHaveRun, cause }: StoreFailure): string {
  const why = textOf(cause instanceof Error ? cause.message : cause);
  const assume = mayHaveRun ? "it may have been carried out all the same" : "it was not carried out";
  return `The server did not confirm a request about ${quote(lockName)} (${oneLine(why)}); ${assume}.`;
}

/** Names come from data: quoted, so that none can break a log line. */
export function quote(text: string): string {
  // JSON leaves U+2028, U+2029, DEL and the C1 controls as they are, and some log viewers break lines there.
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Whatever a client library rejected with, as text: anything can be thrown, and the report of it must not throw. */
function textOf(cause: unknown): string {
  try {
    return String(cause);
  } catch {
    return "something that cannot be shown";
  }
}

function oneLine(text: string): string {
  return quote(text).slice(1, -1);
}
