/**
 * What errors know, and the text that says it.
 */

// --- What errors know, as plain data.

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

// --- What errors say: one sentence and one line each, whatever a name, a label or a foreign client may contain.

/** Why a lease is over. */
export const OVER: Readonly<Record<OverReason, string>> = {
  expired: "it was not renewed in time, so the lock may have been granted to another holder since",
  "force-released": "it was force-released, so the lock may have been granted to another holder",
  "server-lost": "the server lost it before its time was over, so the lock may have been granted to another holder",
  "max-hold": "maxHoldMs was reached, so it is no longer renewed, and the lock becomes free when the lease ends",
  closing: "this Holdfast is closing, and keeps the lease only until its work ends or the grace is over",
  closed:
    "this Holdfast was closed and released it, or left it to expire, so the lock may have been granted to another holder",
  released: "this lease was already released with release(), so the lock may have been granted to another holder since",
  "handed-over": "it was exported for another process, which may hold it now",
  superseded: "a later call waits for its work to end",
};

/** A lease is over: why, and if somebody has ended it by force, who and with which words. */
export function lostMessage(
  lockName: string,
  { reason, token, forced }: { reason: OverReason; token: number; forced?: Forced | undefined },
): string {
  const by = forced?.by === undefined ? "" : ` by ${quote(forced.by)}`;
  const why = forced?.reason === undefined ? "" : `, because ${quote(forced.reason)}`;
  const said = by + why === "" ? "" : ` It was released${by}${why}.`;
  const state = reason === "closing" || reason === "superseded" ? "must end" : "is over";
  return `The lease on ${quote(lockName)} (token ${token}) ${state}: ${OVER[reason]}.${said}`;
}

/** A lock is paused: by whom, why, since when and until when, and what may be assumed. */
export function pausedMessage(lockName: string, pause: Pause): string {
  return `${quote(lockName)} was not acquired: it is ${describePause(pause)}; nothing is held. Retry after the pause, or wait with throughPause: true.`;
}

function describePause({ by, label, sinceAtMs, untilAtMs }: Pause): string {
  const end = untilAtMs === undefined ? "someone resumes it" : instant(untilAtMs);
  return `paused by ${quote(by)} for ${quote(label)} since ${instant(sinceAtMs)}, until ${end}`;
}

/** A number from a key may be none of a date's. */
function instant(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? String(atMs) : date.toISOString();
}

/** Why a barrier broke. */
export const BROKE: Readonly<Record<BreakReason, string>> = {
  "lease-ended": "the lease ended",
  "timed-out": "the wait timed out",
  aborted: "the wait was aborted",
  left: "the wait was given up",
  reset: "it was reset",
};

/** The wait ended: who is in the way, and what may be assumed. */
export function timeoutMessage(
  lockName: string,
  {
    waitMs,
    holder,
    isOwn = false,
    waitersAhead,
    pause,
  }: {
    waitMs: number;
    holder?: Holder | undefined;
    isOwn?: boolean | undefined;
    waitersAhead?: number | undefined;
    pause?: Pause | undefined;
  },
): string {
  const waited = waitMs === 0 ? "immediately" : `within ${waitMs} ms`;
  const hint = isOwn
    ? " The holder is a lease of this same Holdfast: check that the caller does not wait for itself."
    : "";
  const ahead = waitersAhead ? `, with ${waitersAhead} ${waitersAhead === 1 ? "waiter" : "waiters"} ahead` : "";
  const paused = pause === undefined ? "" : `: ${describePause(pause)}`;
  return `${quote(lockName)} was not acquired ${waited}${paused}${holderText(holder, isOwn)}${ahead}; nothing is held, and retrying is safe.${hint}`;
}

function holderText(holder: Holder | undefined, isOwn: boolean): string {
  if (holder === undefined) return "";
  const process = processOf(holder);
  const label = holder.label === undefined ? "" : ` for ${quote(holder.label)}`;
  const since = holder.sinceAtMs === undefined ? "" : ` since ${new Date(holder.sinceAtMs).toISOString()}`;
  const token = holder.token === undefined ? "" : `, token ${holder.token}`;
  const { leaseLeftMs } = holder;
  const end = leaseLeftMs === Infinity ? "without end" : `lease ends in ${Math.ceil(leaseLeftMs)} ms`;
  return `: held by ${isOwn ? "this process, " : ""}${process}${label}${since}${token}, ${end}`;
}

/** A process as people know it; as an owner id where no record tells more. */
export function processOf({ owner, host, pid }: Pick<Holder, "owner" | "host" | "pid">): string {
  // A foreign client may have written anything for its owner, and anybody may write a record.
  return host === undefined ? oneLine(owner) : `${oneLine(owner)} (pid ${pid} on ${oneLine(host)})`;
}

/** Two processes disagree about a number. */
export function mismatchMessage(
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
    permits === undefined ? `this process declares ${declared}` : `${permits} of ${declared} declared were requested`;
  return `${quote(lockName)} has ${capacity} ${counted}, but ${wanted}; nothing is held. Declare the same number everywhere, or ${counted === "permits" ? "resize" : "reset"}.`;
}

/** The server may evict locks: what it is set to, what that may do, and what to do about it. */
export function evictionMessage(
  lockName: string,
  { policy, maxmemoryBytes }: { policy: string; maxmemoryBytes: number },
): string {
  return (
    `${quote(lockName)} was not acquired: the server evicts keys when its ${maxmemoryBytes} bytes of memory are full ` +
    `(maxmemory-policy ${oneLine(policy)}), so it may grant a lock that is still held. ` +
    "Run CONFIG SET maxmemory-policy noeviction, or accept the risk with createHoldfast({ allowEviction: true })."
  );
}

/** Another protocol is in use: both versions, who uses the other one, what may be assumed and what to do. */
export function protocolMessage(
  lockName: string,
  { protocol, otherProtocol, version, otherVersion, clientId, host, pid, prefix, unusedInMs }: ProtocolConflict,
): string {
  return (
    `${quote(lockName)} was not acquired and nothing is held: client ${processOf({ owner: clientId, host, pid })} uses protocol ${otherProtocol} ` +
    `(version ${oneLine(otherVersion)}) under the prefix ${quote(prefix)}, and does not see locks of protocol ${protocol} ` +
    `(version ${version}), which this process uses. Run one major version of Holdfast for each prefix; ` +
    `protocol ${otherProtocol} counts as unused ${Math.ceil(unusedInMs / 1_000)} s from now if no client uses it again.`
  );
}

/** The server did not confirm: why, and what may have happened. */
export function storeMessage(lockName: string, { mayHaveRun, cause, missingPermission }: StoreFailure): string {
  const why = textOf(cause instanceof Error ? cause.message : cause);
  const assume = mayHaveRun ? "it may still have been carried out" : "it was not carried out";
  const advice = cause instanceof AdvisedCause && cause.advice !== undefined ? ` ${cause.advice}` : adviceOn(why);
  return `The server did not confirm a request about ${quote(lockName)} (${oneLine(why)}${lacks(missingPermission)}); ${assume}.${advice}`;
}

/** What a user can do about it, where the words of the server or the client library do not say. */
const ADVICE: readonly (readonly [says: RegExp, advice: string])[] = [
  // node-redis says the same of a client that was never connected and of one that was closed.
  [
    /\bthe client is closed\b/i,
    "Call `await client.connect()` before the first lock, and make a new client after a close.",
  ],
  [
    /^MOVED \d/,
    "The server belongs to a cluster: make the client with the cluster class of its library, such as `Redis.Cluster`, `createCluster` or `GlideClusterClient`.",
  ],
  [
    /None of startup nodes is available|Failed to refresh slots cache|cluster support disabled/i,
    "No node of a cluster answered: check the addresses, and if the server is not part of a cluster, make a plain client.",
  ],
];

function adviceOn(why: string): string {
  const found = ADVICE.find(([says]) => says.test(why));
  return found === undefined ? "" : ` ${found[1]}`;
}

/** Too few of several servers did what was asked: what each of them said, and what may be assumed. */
export function quorumMessage(
  lockName: string,
  {
    answers,
    mayHaveRun,
    why = "no majority of the servers replied",
  }: { readonly answers: readonly ServerAnswer[]; readonly mayHaveRun: boolean; readonly why?: string | undefined },
): string {
  const said = answers.map(({ server, answer, error }) => {
    const reason = error === undefined ? "" : ` (${oneLine(textOf(reasonOf(error)))}${lacks(permissionOf(error))})`;
    return `server ${server} ${ANSWERS[answer]}${reason}`;
  });
  const assume = mayHaveRun ? "some of it may still have been carried out" : "nothing was carried out";
  return `${quote(lockName)}: ${why}: ${said.join(", ")}; ${assume}.`;
}

const ANSWERS: Readonly<Record<ServerAnswer["answer"], string>> = {
  granted: "granted it",
  held: "has granted it to someone else",
  done: "did it",
  "not-held": "does not hold it for this process",
  none: "did not reply",
  error: "refused",
};

/** What would have to be permitted. */
function lacks(missingPermission: string | undefined): string {
  return missingPermission === undefined ? "" : `: its user lacks ${oneLine(missingPermission)}`;
}

function permissionOf(error: unknown): string | undefined {
  // The class itself stands in the file that imports this one.
  return error instanceof Error ? (error as Partial<StoreFailure>).missingPermission : undefined;
}

/** The innermost words: what a store says around them is said here once for all servers. */
function reasonOf(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : cause;
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

/** The cause of a StoreError, and what whoever runs the program can do about it. */
export class AdvisedCause extends Error {
  /** Undefined if there is nothing to do. */
  readonly advice: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly advice?: string | undefined } = {}) {
    super(message, options);
    this.advice = options.advice;
  }
}
