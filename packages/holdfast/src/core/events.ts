/**
 * The events of locks, published on diagnostics channels.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import { ClosedError, type Forced, type LossReason, type Pause, PausedError, StoreError } from "./errors.js";
import type { TimedOut } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import type { ServerAddress, Store } from "./store.js";
import type { Moment } from "./time.js";

// --- What happens to locks, on `node:diagnostics_channel`. Nothing is built or sent while nobody listens.
//
// | channel | published |
// |---|---|
// | `holdfast:acquire` | an acquire begins |
// | `holdfast:wait` | the lock was taken; the caller waits |
// | `holdfast:grant` | a lease begins |
// | `holdfast:ungranted` | an acquire has ended without a lease |
// | `holdfast:renew` | a renewal was confirmed, or failed and will be tried again |
// | `holdfast:lost` | a lease ended before it was released |
// | `holdfast:release` | a lease was released, or handed over to another process |
// | `holdfast:command` | a script was called, and has answered or not |
// | `holdfast:forced` | this process has taken a lock away from its holder |
// | `holdfast:pause` | this process has paused a lock, or given a pause another end |
// | `holdfast:resume` | this process has ended a pause |
// | `holdfast:inbox` | messages of the server do not reach this process, or reach it again |
// | `tracing:holdfast:once:…`, `tracing:holdfast:lead:…` | a call of `once`, a term of `lead`, from its start to its end; made in recipes/tracing.ts |
// | `tracing:holdfast:cache:…` | a call of `get` of a cache; made there as well |
// | `holdfast:idempotency` | a request with an `Idempotency-Key` was answered; made in integrations/http/events.ts |
//
// Lock names are data of the application: do not use them as metric labels without thought.

/** What every message says. */
export interface LockEvent {
  readonly kind: string;
  readonly lockName: string;
  readonly owner: string;
  /**
   * Which side of a read-write lock it was asked for, also after the lease has changed sides; absent of all other kinds, and of
   * what is done to the lock and not to a side of it: `holdfast:forced`, `:pause` and `:resume`.
   */
  readonly mode?: "read" | "write" | undefined;
}

/** What is told of one call. */
export interface CallEvent extends LockEvent {
  /** The same object in all that is told of that call, and of no other; nothing to be read. */
  readonly call: object;
}

/** `holdfast:acquire`. A grant with the same `call` follows, or `holdfast:ungranted`. */
export interface AcquireEvent extends CallEvent {
  readonly waitMs: number;
  readonly leaseMs: number;
  /** Where it is asked for; undefined if the client library does not say, or there are several. */
  readonly server: ServerAddress | undefined;
}

/** `holdfast:wait` */
export interface WaitEvent extends LockEvent {
  /** Whose wait it is; absent if it is that of all who have called with this `owner` until now. */
  readonly call?: object | undefined;
  /** True if the caller stands in the server's queue; false if it cannot listen now, and asks again by itself. */
  readonly queued: boolean;
}

/** `holdfast:grant`. One whose `call` was never told of is part of another, as that of a member of a multi-lock. */
export interface GrantEvent extends CallEvent {
  readonly token: number;
  /** From the call to the grant, in ms. */
  readonly waitedMs: number;
  /** The `key` option of the lock; absent if it has none. */
  readonly key?: string | undefined;
  /** How many permits it has, and how many this process declares there to be; absent where there are none to be counted. */
  readonly permits?: { readonly taken: number; readonly limit: number };
}

/**
 * How an acquire ended that holds nothing.
 *
 * - `refused`: it was not to wait, or the server says that no waiting helps
 * - `timeout`: `waitMs` is over
 * - `aborted`: by the signal of its caller
 * - `paused`: somebody has paused the lock
 * - `closed`: this Holdfast was closed
 * - `unknown`: the server did not answer
 * - `passed`: what was waited for has happened, and is nothing that is held, as with a latch
 */
export type UngrantedOutcome = "refused" | "timeout" | "aborted" | "paused" | "closed" | "unknown" | "passed";

/** `holdfast:ungranted` */
export interface UngrantedEvent extends CallEvent {
  readonly outcome: UngrantedOutcome;
  /** From the call to its end, in ms. */
  readonly waitedMs: number;
  /** What ended it; undefined if it was time, or has passed. */
  readonly error: unknown;
}

/** `holdfast:renew` */
export interface RenewEvent extends LockEvent {
  readonly token: number;
  /** Undefined if the renewal was confirmed. */
  readonly error: Error | undefined;
  /** How long the lease may be trusted from now, in ms. */
  readonly validForMs: number;
}

/** `holdfast:lost` */
export interface LostEvent extends LockEvent {
  readonly token: number;
  readonly reason: LossReason;
  /** Of `force-released`: who did it and why, if that was said and heard. */
  readonly forced: Forced | undefined;
}

/** `holdfast:release` */
export interface ReleaseEvent extends LockEvent {
  readonly token: number;
  readonly outcome: "released" | "expired-unclaimed" | "lost" | "unknown" | "handed-over";
  /** From the grant to the release, in ms. */
  readonly heldMs: number;
}

/** `holdfast:command`: a script was called about a lock, and has answered or not. */
export interface CommandEvent {
  readonly lockName: string;
  /** As its source is named, such as `mutex/acquire`. */
  readonly script: string;
  /** From the call to its end, in ms. */
  readonly durationMs: number;
  /** Undefined if the server has answered. */
  readonly error: unknown;
  /** Which one it was, when it answered; undefined if the client library does not say, as where there are several. */
  readonly server: ServerAddress | undefined;
}

/** What this process does in the place of others. */
export interface DeedEvent extends LockEvent {
  /** Id of the client that did it: several Holdfasts of one process tell on the same channels. */
  readonly clientId: string;
}

/** `holdfast:forced`. `owner` is empty if the holder was named by its token alone. */
export interface ForcedEvent extends DeedEvent {
  /** Undefined if the holder was named by its owner alone. */
  readonly token: number | undefined;
  readonly forced: Forced;
}

/** `holdfast:pause`. `owner` is the claim of the pause. */
export interface PauseEvent extends DeedEvent {
  /** The `key` option of the mutex; absent if it has none. */
  readonly key?: string | undefined;
  readonly pause: Pause;
  /** Of a pause that has another end now: the `owner` it had before. Absent where a pause begins. */
  readonly former?: string | undefined;
}

/** `holdfast:resume`. `owner` is the claim of the pause. */
export interface ResumeEvent extends DeedEvent {
  /** The `key` option of the mutex; absent if it has none. */
  readonly key?: string | undefined;
  readonly pause: Pause;
  /** Who resumed, in their own words. */
  readonly by: string;
  readonly pausedForMs: number;
  /** How many were waiting. */
  readonly waiterCount: number;
}

/** `holdfast:inbox`. It is about no lock: every lock that is waited for over that connection is affected. */
export interface InboxEvent {
  /** Id of the client whose connection it is. */
  readonly clientId: string;
  /** Which of its connections; empty where it has only one. */
  readonly connection: string;
  /** `deaf`: an echo did not arrive, so waiters poll, in their places in the queue. `hears`: an echo has arrived again. */
  readonly state: "deaf" | "hears";
  /** Of `hears`: for how long it was deaf, in ms; else 0. */
  readonly deafMs: number;
}

/** The channels. Publish only after `hasSubscribers`, so that no message is built for nobody. */
export const channels: {
  readonly acquire: Channel;
  readonly wait: Channel;
  readonly grant: Channel;
  readonly ungranted: Channel;
  readonly renew: Channel;
  readonly lost: Channel;
  readonly release: Channel;
  readonly command: Channel;
  readonly forced: Channel;
  readonly pause: Channel;
  readonly resume: Channel;
  readonly inbox: Channel;
} = {
  acquire: channel("holdfast:acquire"),
  wait: channel("holdfast:wait"),
  grant: channel("holdfast:grant"),
  ungranted: channel("holdfast:ungranted"),
  renew: channel("holdfast:renew"),
  lost: channel("holdfast:lost"),
  release: channel("holdfast:release"),
  command: channel("holdfast:command"),
  forced: channel("holdfast:forced"),
  pause: channel("holdfast:pause"),
  resume: channel("holdfast:resume"),
  inbox: channel("holdfast:inbox"),
};

/** The lock that an event is about. */
export interface ToldLock {
  readonly kind: string;
  readonly name: string;
  readonly mode?: "read" | "write" | undefined;
}

/** What every message says. Without the name of the property where there is no mode: most locks have none. */
export function aboutLock({ kind, name: lockName, mode }: ToldLock, owner: string): LockEvent {
  return mode === undefined ? { kind, lockName, owner } : { kind, lockName, owner, mode };
}

/** A claim, whose id is made when it is asked for. */
interface Named {
  readonly owner: string;
}

/** Somebody waits behind that claim. @param call  who; undefined for all who have called */
export function publishWait(lock: ToldLock, claim: Named, queued: boolean, call?: object): void {
  if (!channels.wait.hasSubscribers) return;
  const event: WaitEvent = { ...aboutLock(lock, claim.owner), queued, ...(call && { call }) };
  channels.wait.publish(event);
}

/** Where requests go now. What a store of the user's own has under that name, or throws, must not get in the way of a lock. */
export function serverOf(store: Pick<Store, "server"> | undefined): ServerAddress | undefined {
  try {
    return typeof store?.server === "function" ? store.server() : undefined;
  } catch {
    return undefined;
  }
}

/** Somebody has called for a lock, behind that claim. @param store  where; undefined on several servers */
export function publishAcquire(
  lock: ToldLock,
  claim: Named,
  { waitMs, leaseMs }: { waitMs: number; leaseMs: number },
  call: object,
  store: Pick<Store, "server"> | undefined,
): void {
  if (!channels.acquire.hasSubscribers) return;
  const server = serverOf(store);
  const event: AcquireEvent = { ...aboutLock(lock, claim.owner), call, waitMs, leaseMs, server };
  channels.acquire.publish(event);
}

// --- Tells of calls that end without a lease, to whoever listened when they began.

/** A call of which is told. */
export interface ToldCall {
  readonly protocol: ToldLock;
  readonly options: { readonly waitMs: number; readonly signal: AbortSignal | undefined };
  readonly runtime: Runtime;
  /** The claim behind which it waits; asked for when it has ended. */
  readonly claim: () => { readonly owner: string };
  /** When it began, which is what tells it from others; asked for when it has ended. */
  readonly startedAt: () => Moment;
}

/** The two ends of a call that hold nothing. */
interface Ends {
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** The same ends, which tell of it first. */
export function tellingEnds<Told extends Ends>(ends: Told, call: ToldCall): Told {
  if (!channels.ungranted.hasSubscribers) return ends;
  const { waitMs, signal } = call.options;
  return {
    ...ends,
    timedOut(end: TimedOut) {
      publishUngranted(call, waitMs > 0 ? "timeout" : "refused");
      ends.timedOut(end);
    },
    failed(error: unknown) {
      const isAborted = signal?.aborted === true && error === signal.reason;
      publishUngranted(call, isAborted ? "aborted" : ungrantedOutcome(error), error);
      ends.failed(error);
    },
  };
}

/** A call has ended without a lease. */
export function publishUngranted(
  { protocol, runtime, claim, startedAt }: ToldCall,
  outcome: UngrantedOutcome,
  error?: unknown,
): void {
  if (!channels.ungranted.hasSubscribers) return;
  const call = startedAt();
  const waitedMs = runtime.monotonicMs() - call.monotonicMs;
  const event: UngrantedEvent = {
    ...aboutLock(protocol, claim().owner),
    call,
    outcome,
    waitedMs,
    error,
  };
  channels.ungranted.publish(event);
}

function ungrantedOutcome(error: unknown): UngrantedOutcome {
  if (error instanceof PausedError) return "paused";
  if (error instanceof ClosedError) return "closed";
  return error instanceof StoreError ? "unknown" : "refused";
}

/**
 * What tells a hold from all others of this process, from its grant to its end.
 *
 * By the token too, since leases of one claim may follow each other; but not of a read-write lock, where each lease has a claim of
 * its own, and an upgrade changes its token.
 */
export function idOf({ lockName, owner, token, mode }: LockEvent & { readonly token: number }): string {
  return mode === undefined ? `${owner} ${token} ${lockName}` : `${owner} ${lockName}`;
}
