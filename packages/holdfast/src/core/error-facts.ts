/** What errors know, as plain data. */

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
  /** Time of the grant by the server's clock, in ms since 1970; undefined for a foreign client, and on a quorum. */
  readonly sinceAtMs: number | undefined;
  /** What is left of the lease on the server, in ms; Infinity for a foreign key without expiry. */
  readonly leaseLeftMs: number;
}

/** A lock that a person has taken out of use for a while: whoever holds goes on, and nobody is granted after. */
export interface Pause {
  /** Who paused it, in their own words. */
  readonly by: string;
  /** Why. */
  readonly label: string;
  /** When it began, by the server's clock, in ms since 1970. */
  readonly sinceAtMs: number;
  /** When it ends by itself, by the server's clock, in ms since 1970; undefined if somebody has to resume. */
  readonly untilAtMs: number | undefined;
  /** Its text, as it stands in its key: tells it from other pauses. */
  readonly owner: string;
}

/** Two versions of the protocol under one prefix: this client's, and that of the client that was last seen using the other. */
export interface ProtocolConflict {
  readonly protocol: number;
  readonly otherProtocol: number;
  /** Of the libraries. */
  readonly version: string;
  readonly otherVersion: string;
  /** The client that uses the other protocol, with what its record tells. */
  readonly clientId: string;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** The option of both. */
  readonly prefix: string;
  /** After how many ms the other protocol counts as unused, if no client of it comes again. */
  readonly unusedInMs: number;
}

/** What was said with a forced release. */
export interface Forced {
  /** Who released it, in their own words; undefined if they did not say. */
  readonly by: string | undefined;
  /** Why; undefined if they did not say. */
  readonly reason: string | undefined;
}

/**
 * Why a lease ended before it was released.
 *
 * - `expired`: its validity ran out before a renewal was confirmed; someone else may hold the lock since then
 * - `force-released`: somebody released it by force
 * - `server-lost`: the server no longer held it for us although its time was not over: memory loss, failover, a foreign
 *   DEL, or a forced release whose message did not arrive
 * - `max-hold`: the caller's own `maxHoldMs` was reached, so the lease is no longer renewed
 * - `closed`: `close()` of the Holdfast gave it back while it was held, or, at the end of its grace, left it to run out
 * - `closing`: `close({ graceMs })` of the Holdfast asks the holder to end: it is still held and renewed until its work has
 *   settled or the grace is over
 */
export type LossReason = "expired" | "force-released" | "server-lost" | "max-hold" | "closed" | "closing";

/**
 * Why a lease is over: it was lost, or its holder ended it; or, as `superseded`, why it is to end, although it is still held: a
 * later call wants to run.
 */
export type OverReason = LossReason | "released" | "handed-over" | "superseded";

/**
 * Why a generation of a barrier broke.
 *
 * - `lease-ended`: a party stopped renewing its arrival, as when its process died or stood still
 * - `timed-out`, `aborted`: a party's `waitMs` ended, or its signal aborted
 * - `left`: a party gave up for another reason, such as the close of its Holdfast
 * - `reset`: somebody called `reset`
 */
export type BreakReason = "lease-ended" | "timed-out" | "aborted" | "left" | "reset";

/** What a store knows about a failed call. */
export interface StoreFailure {
  /** False only if it is certain that the script changed nothing. */
  readonly mayHaveRun: boolean;
  /** True if the same call may succeed later (timeout, lost connection, server loading); false if it will not. */
  readonly transient: boolean;
  /** The client library's error, or a sentence. */
  readonly cause: unknown;
  /**
   * In how many ms the server may grant locks again, if it refused because it took over from another or was restarted;
   * else absent.
   */
  readonly resumesInMs?: number | undefined;
  /** What the Redis user may not do, as a rule of ACL SETUSER that would permit it, if that is the trouble; else absent. */
  readonly missingPermission?: string | undefined;
}

/** What one of several independent servers answered. */
export interface ServerAnswer {
  /** Its place in the array that was given as `redlock`, from 0. */
  readonly server: number;
  /**
   * - `granted`: it granted its part
   * - `held`: somebody else has its part
   * - `done`: it did what was asked
   * - `not-held`: it does not hold its part for us
   * - `none`: there was no answer in time; what was asked may be done all the same
   * - `error`: it answered with an error, or refused
   */
  readonly answer: "granted" | "held" | "done" | "not-held" | "none" | "error";
  /** Of `held`: what is left of the lease of whoever has it, in ms; Infinity if it has no end. */
  readonly leaseLeftMs: number | undefined;
  /** Of `none` and `error`: why. */
  readonly error: unknown;
}
