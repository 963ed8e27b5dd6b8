/**
 * Error data and error messages.
 */

// --- Error data.

/** A holder of a lock, as described by the server and by the record of the holder's client. */
export interface Holder {
  /**
   * Owner id of the claim, which begins with `<clientId>/<number>/`, or the value that another library's client wrote.
   */
  readonly owner: string;
  /** The `label` option of the holder's acquire; undefined if none was given or the holder is not a Holdfast client. */
  readonly label: string | undefined;
  /** Host name of the holder's process; undefined if the client's record cannot be read. */
  readonly host: string | undefined;
  /** Process id of the holder on that host; undefined if the client's record cannot be read. */
  readonly pid: number | undefined;
  /** The `clientName` option of the holder; undefined if none was given or the client's record cannot be read. */
  readonly clientName: string | undefined;
  /** Fencing token of the current grant; undefined for a client of another library. */
  readonly token: number | undefined;
  /** Server time of the grant, in ms since 1970; undefined for a client of another library and on a quorum. */
  readonly sinceAtMs: number | undefined;
  /** Remaining lease time on the server, in ms; Infinity for another library's key that never expires. */
  readonly leaseLeftMs: number;
}

/** A pause of a lock: current holders keep their leases, and the server makes no new grants until the pause ends. */
export interface Pause {
  /** Name of the person or program that paused the lock, as given. */
  readonly by: string;
  /** The reason, as given. */
  readonly label: string;
  /** Server time at which the pause began, in ms since 1970. */
  readonly sinceAtMs: number;
  /** Server time at which the pause ends, in ms since 1970; undefined if it lasts until someone resumes the lock. */
  readonly untilAtMs: number | undefined;
  /** Identifies the pause. It is the string that the server stores. */
  readonly owner: string;
}

/**
 * A conflict between two protocol versions under one prefix: this client's version, and the most recently used of the
 * other versions.
 */
export interface ProtocolConflict {
  /** Protocol version of this client. */
  readonly protocol: number;
  /** Protocol version of the other client. */
  readonly otherProtocol: number;
  /** Library version of this client. */
  readonly version: string;
  /** Library version of the other client. */
  readonly otherVersion: string;
  /** Id of the client that uses the other protocol. `host` and `pid` come from its record. */
  readonly clientId: string;
  /** Host name of the other client's process; undefined if its record cannot be read. */
  readonly host: string | undefined;
  /** Process id of the other client on that host; undefined if its record cannot be read. */
  readonly pid: number | undefined;
  /** The `prefix` option, which both clients share. */
  readonly prefix: string;
  /** Time in ms until the other protocol counts as unused, provided that no client uses it again. */
  readonly unusedInMs: number;
}

/** Who force-released a lock, and why. */
export interface Forced {
  /** Name of the person or program that released the lock, as given; undefined if not given. */
  readonly by: string | undefined;
  /** The reason, as given; undefined if not given. */
  readonly reason: string | undefined;
}

/**
 * Why a lease ended before it was released.
 *
 * - `expired`: the lease expired before a renewal was confirmed; another client may hold the lock now. From `adopt`, also
 *   that the lease was released
 * - `force-released`: the lease was force-released
 * - `server-lost`: the server no longer has the lease although it has not expired, because of data loss, a failover, a
 *   DEL by another client, or a forced release whose message did not arrive
 * - `max-hold`: the hold reached `maxHoldMs`, so the lease is no longer renewed
 * - `closed`: `close()` released the lease while it was held or, at the end of the grace period, left it to expire
 * - `closing`: `close({ graceMs })` asks the holder to end its work; the lease is held and renewed until the work has
 *   settled or the grace period is over
 */
export type LossReason = "expired" | "force-released" | "server-lost" | "max-hold" | "closed" | "closing";

/**
 * Why a lease is over or must end: it was lost, or its holder ended it. With `superseded`, the lease is still held, but
 * a later call is waiting to run.
 */
export type OverReason = LossReason | "released" | "handed-over" | "superseded";

/**
 * Why a barrier's generation broke.
 *
 * - `lease-ended`: a party stopped renewing its arrival, for example because its process crashed or froze
 * - `timed-out`, `aborted`: a party's `waitMs` passed, or its signal aborted
 * - `left`: a party gave up for another reason, for example because its Holdfast was closed
 * - `reset`: `reset` was called
 */
export type BreakReason = "lease-ended" | "timed-out" | "aborted" | "left" | "reset";

/** The facts about a failed store call. */
export interface StoreFailure {
  /** False only if it is certain that the script changed nothing. */
  readonly mayHaveRun: boolean;
  /** True if the same call may succeed later (timeout, lost connection, server loading); false if it will not. */
  readonly transient: boolean;
  /** The client library's error, or a string that describes the cause. */
  readonly cause: unknown;
  /**
   * Time until the server may grant locks again, in ms, if it refused the call because it took over from another server
   * or was restarted. Absent otherwise.
   */
  readonly resumesInMs?: number | undefined;
  /** The ACL SETUSER rule that would permit the call, if the Redis user lacks a permission. Absent otherwise. */
  readonly missingPermission?: string | undefined;
}

/** The reply of one of several independent servers. */
export interface ServerAnswer {
  /** Index of the server in the array given as `redlock`, from 0. */
  readonly server: number;
  /**
   * - `granted`: the server granted the lock to this claim
   * - `held`: the server has granted the lock to another claim
   * - `done`: the server carried out the request
   * - `not-held`: this claim does not hold the lock on that server
   * - `none`: no reply in time; the server may carry out the request anyway
   * - `error`: the server replied with an error, or the request was refused
   */
  readonly answer: "granted" | "held" | "done" | "not-held" | "none" | "error";
  /** With `held`: remaining lease time of the current holder, in ms; Infinity if it has no end. */
  readonly leaseLeftMs: number | undefined;
  /** With `none` and `error`: the reason. */
  readonly error: unknown;
}

// --- Error messages: one line each, even if a name, a label or a value written by another client contains line breaks.

/** Text for each reason why a lease is over or must end. */
export const OVER: Readonly<Record<OverReason, string>> = {
  expired: "it was not renewed in time, so the lock may have been granted to another holder since",
  "force-released": "it was force-released, so the lock may have been granted to another holder",
  "server-lost": "the server no longer has it, so the lock may have been granted to another holder",
  "max-hold": "maxHoldMs was reached; release() or expiry frees the lock",
  closing: "this Holdfast is closing; the lease is kept until its work or the grace period ends",
  closed:
    "this Holdfast was closed and released it, or left it to expire, so the lock may have been granted to another holder",
  released: "it was released with release(), so the lock may have been granted to another holder since",
  "handed-over": "it was exported for another process, which may hold it now",
  superseded: "a later call is waiting to run",
};

/**
 * Message for a lease that is over or must end, with the reason. After a forced release, it also says who released the
 * lock and why, if that was given.
 */
export function lostMessage(
  lockName: string,
  {
    reason,
    token,
    forced,
    why: text = OVER[reason],
  }: { reason: OverReason; token: number; forced?: Forced | undefined; why?: string | undefined },
): string {
  const by = forced?.by === undefined ? "" : ` by ${quote(forced.by)}`;
  const why = forced?.reason === undefined ? "" : `, because ${quote(forced.reason)}`;
  const said = by + why === "" ? "" : ` It was released${by}${why}.`;
  const state = reason === "closing" || reason === "superseded" ? "must end" : "is over";
  return `The lease on ${quote(lockName)} (token ${token}) ${state}: ${text}.${said}`;
}

/** Message for a paused lock: who paused it and why, when the pause begins and ends, and what the caller may assume. */
export function pausedMessage(lockName: string, pause: Pause): string {
  return `${quote(lockName)} was not acquired: it is ${describePause(pause)}; nothing is held. Retry after the pause, or wait with throughPause: true.`;
}

function describePause({ by, label, sinceAtMs, untilAtMs }: Pause): string {
  const end = untilAtMs === undefined ? "it is resumed" : instant(untilAtMs);
  return `paused by ${quote(by)} for ${quote(label)} from ${instant(sinceAtMs)} until ${end}`;
}

/** Formats a time. If the number, which comes from a stored key, is out of range for a date, returns it as text. */
export function instant(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? String(atMs) : date.toISOString();
}

/** Text for each reason why a barrier broke. */
export const BROKE: Readonly<Record<BreakReason, string>> = {
  "lease-ended": "the lease ended",
  "timed-out": "the wait timed out",
  aborted: "the wait was aborted",
  left: "the wait ended",
  reset: "it was reset",
};

/** Message for a wait that timed out: the holder, the waiters ahead, and what the caller may assume. */
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
  const hint = isOwn ? " Another task in this process or the caller itself holds it." : "";
  const ahead = waitersAhead ? `, with ${waitersAhead} ${waitersAhead === 1 ? "waiter" : "waiters"} ahead` : "";
  const paused = pause === undefined ? "" : ` while ${describePause(pause)}`;
  return `${quote(lockName)} was not acquired ${waited}${paused}${holderText(holder, isOwn)}${ahead}; retrying is safe.${hint}`;
}

function holderText(holder: Holder | undefined, isOwn: boolean): string {
  if (holder === undefined) return "";
  const process = processOf(holder);
  const label = holder.label === undefined ? "" : ` for ${quote(holder.label)}`;
  const since = holder.sinceAtMs === undefined ? "" : ` since ${instant(holder.sinceAtMs)}`;
  const token = holder.token === undefined ? "" : `, token ${holder.token}`;
  const { leaseLeftMs } = holder;
  const end = leaseLeftMs === Infinity ? "no expiry" : `lease ends in ${Math.ceil(leaseLeftMs)} ms`;
  return `: held by ${isOwn ? "this process, " : ""}${process}${label}${since}${token}, ${end}`;
}

/** Describes a process by its owner id, and by process id and host if its record could be read. */
export function processOf({ owner, host, pid }: Pick<Holder, "owner" | "host" | "pid">): string {
  // `oneLine` is needed because another library's client can write any string as the owner, and any client can write
  // any record.
  return host === undefined ? oneLine(owner) : `${oneLine(owner)} (pid ${pid} on ${oneLine(host)})`;
}

/** Message for two processes that declare different numbers of permits or parties. */
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
    permits === undefined
      ? `this process declares ${declared}`
      : `${permits} were requested (this process declares ${declared})`;
  return `${quote(lockName)} has ${capacity} ${counted}, but ${wanted}; nothing was done. Use the same number everywhere, or call ${counted === "permits" ? "resize" : "reset"}().`;
}

/** Message for a server that may evict locks: its setting, the consequence, and the remedy. */
export function evictionMessage(
  lockName: string,
  { policy, maxmemoryBytes }: { policy: string; maxmemoryBytes: number },
): string {
  return (
    `${quote(lockName)} was refused: the server evicts keys at its memory limit of ${maxmemoryBytes} bytes ` +
    `(maxmemory-policy ${oneLine(policy)}), so it may grant a lock that is still held. ` +
    "Run CONFIG SET maxmemory-policy noeviction, or accept the risk with createHoldfast({ allowEviction: true })."
  );
}

/** Message for a protocol conflict: both versions, the other client, what the caller may assume, and the remedy. */
export function protocolMessage(
  lockName: string,
  { protocol, otherProtocol, version, otherVersion, clientId, host, pid, prefix, unusedInMs }: ProtocolConflict,
): string {
  return (
    `${quote(lockName)} was refused and nothing is held: client ${processOf({ owner: clientId, host, pid })} uses protocol ${otherProtocol} ` +
    `(version ${oneLine(otherVersion)}) under the prefix ${quote(prefix)}, and does not see locks of this process (protocol ${protocol}, ` +
    `version ${version}). Run one major version per prefix; ` +
    `locks work again in ${Math.ceil(unusedInMs / 1_000)} s unless a client uses protocol ${otherProtocol}.`
  );
}

/** Message for a request that the server did not confirm: the reason, and whether it may have been carried out. */
export function storeMessage(lockName: string, { mayHaveRun, cause, missingPermission }: StoreFailure): string {
  const why = textOf(cause instanceof Error ? cause.message : cause);
  const assume = mayHaveRun ? "it may still have been carried out" : "it was not carried out";
  const advice = cause instanceof AdvisedCause && cause.advice !== undefined ? ` ${cause.advice}` : adviceOn(why);
  return `The server did not confirm a request for ${quote(lockName)} (${oneLine(why)}${lacks(missingPermission)}); ${assume}.${advice}`;
}

/** Advice for errors from servers and client libraries whose messages do not say what to do. */
const ADVICE: readonly (readonly [says: RegExp, advice: string])[] = [
  // node-redis uses the same message for a client that was never connected and for one that was closed.
  [
    /\bthe client is closed\b/i,
    "Call `await client.connect()` before the first lock, and create a new client after closing one.",
  ],
  [
    /^MOVED \d/,
    "The server belongs to a cluster: create a cluster client, such as `Redis.Cluster`, `createCluster` or `GlideClusterClient`.",
  ],
  [
    /None of startup nodes is available|Failed to refresh slots cache|cluster support disabled/i,
    "No cluster node replied: check the addresses, or use a client without cluster mode if the server is not in a cluster.",
  ],
];

function adviceOn(why: string): string {
  const found = ADVICE.find(([says]) => says.test(why));
  return found === undefined ? "" : ` ${found[1]}`;
}

/** Message for a quorum that was not reached: the reply of each server, and what the caller may assume. */
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
  const assume = mayHaveRun ? "it may have run on some servers" : "nothing was carried out";
  return `${quote(lockName)}: ${why}: ${said.join(", ")}; ${assume}.`;
}

const ANSWERS: Readonly<Record<ServerAnswer["answer"], string>> = {
  granted: "granted it",
  held: "has a holder",
  done: "replied",
  "not-held": "has no such lease",
  none: "did not confirm",
  error: "failed",
};

/** Text about a missing permission; empty if none is missing. */
function lacks(missingPermission: string | undefined): string {
  return missingPermission === undefined ? "" : `: the user lacks ${oneLine(missingPermission)}`;
}

function permissionOf(error: unknown): string | undefined {
  // Does not use `instanceof StoreError`, because errors.ts, which defines that class, imports this file.
  return error instanceof Error ? (error as Partial<StoreFailure>).missingPermission : undefined;
}

/**
 * Returns the cause without the text that a StoreError adds, because the quorum message has its own text for all
 * servers.
 */
function reasonOf(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : cause;
}

/** Quotes and escapes a name, because names come from data and must not break a log line. */
export function quote(text: string): string {
  // `JSON.stringify` does not escape U+2028, U+2029, DEL or the C1 controls, but some log viewers break lines at them.
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Converts the rejection value of a client library to text. Never throws, even if the value cannot be converted. */
function textOf(cause: unknown): string {
  try {
    return String(cause);
  } catch {
    return "a value that cannot be shown";
  }
}

function oneLine(text: string): string {
  return quote(text).slice(1, -1);
}

/** A cause of a StoreError, with advice for the operator. */
export class AdvisedCause extends Error {
  /** What the operator can do; undefined if there is nothing to do. */
  readonly advice: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly advice?: string | undefined } = {}) {
    super(message, options);
    this.advice = options.advice;
  }
}
