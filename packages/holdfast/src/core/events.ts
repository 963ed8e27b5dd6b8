/**
 * Lock events, published on diagnostics channels.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import { ClosedError, type Forced, type LossReason, type Pause, PausedError, StoreError } from "./errors.js";
import type { TimedOut } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import type { ServerAddress, Store } from "./store.js";
import type { Moment } from "./time.js";

// --- The events, on `node:diagnostics_channel`. They cost nothing unless someone subscribes.
//
// | channel | published when |
// |---|---|
// | `holdfast:acquire` | an acquire begins |
// | `holdfast:wait` | a caller begins to wait because the lock is not free |
// | `holdfast:grant` | a lease begins |
// | `holdfast:ungranted` | an acquire ends without a lease |
// | `holdfast:renew` | a renewal succeeds, or fails and will be retried |
// | `holdfast:lost` | a lease ends before it is released |
// | `holdfast:release` | a lease is released, or handed over to another process |
// | `holdfast:command` | a script call ends, with or without a reply |
// | `holdfast:forced` | this process force-releases a lock |
// | `holdfast:pause` | this process pauses a lock, or changes the end of a pause |
// | `holdfast:resume` | this process ends a pause |
// | `holdfast:inbox` | messages from the server stop reaching this process, or reach it again |
// | `tracing:holdfast:once:…` | a call to `once` starts and ends; see packages/recipes/src/tracing.ts |
// | `tracing:holdfast:lead:…` | a term of `lead` starts and ends; see packages/recipes/src/tracing.ts |
// | `tracing:holdfast:cache:…` | a call to a cache's `get` starts and ends; see packages/recipes/src/tracing.ts |
// | `holdfast:idempotency` | a request with an `Idempotency-Key` has an outcome; see packages/http/src/events.ts |
//
// Lock names are application data. Used as metric labels, they can create an unlimited number of time series.

/** The members of every lock event. */
export interface LockEvent {
  /** Kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** Name of the lock. */
  readonly lockName: string;
  /** Owner id of the claim. */
  readonly owner: string;
  /**
   * The side of a read-write lock that was requested, even after the lease has changed sides. Absent for all other
   * kinds, and for `holdfast:forced`, `:pause` and `:resume`, which are about the whole lock.
   */
  readonly mode?: "read" | "write" | undefined;
}

/** An event about one acquire call. */
export interface CallEvent extends LockEvent {
  /**
   * The same object in all events of one call, and in no other event. Compare it by identity; its content has no
   * meaning.
   */
  readonly call: object;
}

/** `holdfast:acquire`. A `holdfast:grant` or `holdfast:ungranted` with the same `call` follows. */
export interface AcquireEvent extends CallEvent {
  /** The `waitMs` option of the call. */
  readonly waitMs: number;
  /** The `leaseMs` option of the call. */
  readonly leaseMs: number;
  /** The server that gets the requests; undefined if the client library does not report it, or if there are several. */
  readonly server: ServerAddress | undefined;
}

/** `holdfast:wait`. A caller begins to wait. */
export interface WaitEvent extends LockEvent {
  /** The call that is waiting; absent if the event applies to all calls so far with this `owner`. */
  readonly call?: object | undefined;
  /** True if the caller is in the server's queue; false if it currently gets no messages and polls. */
  readonly queued: boolean;
}

/**
 * `holdfast:grant`. If no `holdfast:acquire` had the same `call`, the grant is part of another acquire, as in a
 * multi-lock.
 */
export interface GrantEvent extends CallEvent {
  /** Fencing token of the lease. */
  readonly token: number;
  /** Time from the call to the grant, in ms. */
  readonly waitedMs: number;
  /** The `key` option of the lock; absent if it has none. */
  readonly key?: string | undefined;
  /**
   * For a semaphore, the permits of this lease and the number of permits that this process declares. Absent otherwise.
   */
  readonly permits?: { readonly taken: number; readonly limit: number };
}

/**
 * Why an acquire ended without a lease.
 *
 * - `refused`: the caller chose not to wait, or an error shows that waiting would not help
 * - `timeout`: `waitMs` has passed
 * - `aborted`: the caller's signal aborted
 * - `paused`: the lock is paused
 * - `closed`: this Holdfast was closed
 * - `unknown`: the server did not confirm the request
 * - `passed`: the awaited event happened; nothing is held, as with a latch
 */
export type UngrantedOutcome = "refused" | "timeout" | "aborted" | "paused" | "closed" | "unknown" | "passed";

/** `holdfast:ungranted`. An acquire ended without a lease. */
export interface UngrantedEvent extends CallEvent {
  /** How the acquire ended. */
  readonly outcome: UngrantedOutcome;
  /** Time from the call to its end, in ms. */
  readonly waitedMs: number;
  /** The error that ended the acquire; undefined if it timed out, did not wait, or has the outcome `passed`. */
  readonly error: unknown;
}

/**
 * `holdfast:renew`. A renewal succeeded, or failed and will be retried. If the server refuses a renewal,
 * `holdfast:lost` is published instead.
 */
export interface RenewEvent extends LockEvent {
  /** Fencing token of the lease. */
  readonly token: number;
  /** The error from a renewal that failed and will be retried; undefined if the server renewed the lease. */
  readonly error: Error | undefined;
  /** How long the holder may rely on the lease from now, in ms. */
  readonly validForMs: number;
}

/** `holdfast:lost`. A lease ended before it was released. */
export interface LostEvent extends LockEvent {
  /** Fencing token of the lease. */
  readonly token: number;
  /** Why the lease ended. */
  readonly reason: LossReason;
  /** With reason `force-released`: who released the lock and why, if given and received. */
  readonly forced: Forced | undefined;
}

/** `holdfast:release`. A lease was released or handed over. */
export interface ReleaseEvent extends LockEvent {
  /** Fencing token of the lease. */
  readonly token: number;
  /**
   * How the lease ended. `expired-unclaimed`: it had expired, but the lock was not granted to another claim. `unknown`:
   * the server did not confirm the release.
   */
  readonly outcome: "released" | "expired-unclaimed" | "lost" | "unknown" | "handed-over";
  /** Time from the grant to the release, in ms. */
  readonly heldMs: number;
}

/** `holdfast:command`. A script call for a lock ended, with or without a reply. */
export interface CommandEvent {
  /** Name of the lock that the script was called for. */
  readonly lockName: string;
  /** Name of the script's source, such as `mutex/acquire`. */
  readonly script: string;
  /** Time from the call to its end, in ms. */
  readonly durationMs: number;
  /** The error that the call failed with; undefined if it succeeded. */
  readonly error: unknown;
  /**
   * The server that got the call, as known when the call ended; undefined if the client library does not report it, or
   * if there are several.
   */
  readonly server: ServerAddress | undefined;
}

/** An action by this process on a lock that others hold or wait for. */
export interface DeedEvent extends LockEvent {
  /** Id of the client that acted. It is needed because all Holdfasts of a process publish on the same channels. */
  readonly clientId: string;
}

/** `holdfast:forced`. `owner` is empty if the caller identified the holder only by its token. */
export interface ForcedEvent extends DeedEvent {
  /** Fencing token of the holder; undefined if the caller identified the holder only by its owner id. */
  readonly token: number | undefined;
  /** Who released the lock and why, as given. */
  readonly forced: Forced;
}

/** `holdfast:pause`. `owner` is the `owner` of the pause. */
export interface PauseEvent extends DeedEvent {
  /** The `key` option of the mutex; absent if it has none. */
  readonly key?: string | undefined;
  /** The pause as it is now. */
  readonly pause: Pause;
  /** The previous `owner` of a pause whose end was changed; absent if the pause has just begun. */
  readonly former?: string | undefined;
}

/** `holdfast:resume`. `owner` is the `owner` of the pause. */
export interface ResumeEvent extends DeedEvent {
  /** The `key` option of the mutex; absent if it has none. */
  readonly key?: string | undefined;
  /** The pause that has ended. */
  readonly pause: Pause;
  /** Name of the person or program that resumed the lock, as given. */
  readonly by: string;
  /** How long the lock was paused, in ms. */
  readonly pausedForMs: number;
  /** Number of waiters when the pause ended. */
  readonly waiterCount: number;
}

/** `holdfast:inbox`. Affects every lock whose waiters get their messages over this connection. */
export interface InboxEvent {
  /** Id of the client that the connection belongs to. */
  readonly clientId: string;
  /** Identifies the connection; empty if the client has only one. */
  readonly connection: string;
  /** `deaf`: an echo did not arrive, so waiters poll and keep their places. `hears`: messages arrive again. */
  readonly state: "deaf" | "hears";
  /** With `hears`: how long the connection was deaf, in ms. With `deaf`: 0. */
  readonly deafMs: number;
}

/**
 * The diagnostics channels. Check `hasSubscribers` before building an event, because most processes do not subscribe.
 */
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
export interface PublishedLock {
  readonly kind: string;
  readonly name: string;
  readonly mode?: "read" | "write" | undefined;
}

/**
 * Returns the members that all lock events have. Leaves out `mode` if it is undefined, because most locks have none.
 */
export function aboutLock({ kind, name: lockName, mode }: PublishedLock, owner: string): LockEvent {
  return mode === undefined ? { kind, lockName, owner } : { kind, lockName, owner, mode };
}

/** A claim. Its owner id may be built on demand. */
interface Named {
  readonly owner: string;
}

/** Publishes `holdfast:wait` for this claim. @param call  the waiting call; undefined if all calls so far wait */
export function publishWait(lock: PublishedLock, claim: Named, queued: boolean, call?: object): void {
  if (!channels.wait.hasSubscribers) return;
  const event: WaitEvent = { ...aboutLock(lock, claim.owner), queued, ...(call && { call }) };
  channels.wait.publish(event);
}

/** Returns the current server of a store. Ignores errors, because a custom store may implement `server` incorrectly. */
export function serverOf(store: Pick<Store, "server"> | undefined): ServerAddress | undefined {
  try {
    return typeof store?.server === "function" ? store.server() : undefined;
  } catch {
    return undefined;
  }
}

/** Publishes `holdfast:acquire` for this claim. @param store  undefined if there are several servers */
export function publishAcquire(
  lock: PublishedLock,
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

// --- Events about calls that end without a lease.

/** A call that events are published for. */
export interface PublishedCall {
  readonly protocol: PublishedLock;
  readonly options: { readonly waitMs: number; readonly signal: AbortSignal | undefined };
  readonly runtime: Runtime;
  /** Returns the claim that the call waited with. Called when the call has ended. */
  readonly claim: () => { readonly owner: string };
  /** Returns the start of the call, which identifies it in events. Called when the call has ended. */
  readonly startedAt: () => Moment;
}

/** Callbacks for the two ways in which a call ends without a lease. */
interface Ends {
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** Wraps the callbacks so that they publish `holdfast:ungranted` first, if that channel has subscribers now. */
export function publishingEnds<Told extends Ends>(ends: Told, call: PublishedCall): Told {
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

/** Publishes that a call has ended without a lease. */
export function publishUngranted(
  { protocol, runtime, claim, startedAt }: PublishedCall,
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
 * Returns an id for a hold. The id is unique in this process and stays the same from the grant to the end of the hold.
 *
 * The id contains the token, because one claim can serve several leases in a row. For a read-write lock it does not
 * contain the token, because each lease has its own claim and an upgrade changes the token.
 */
export function idOf({ lockName, owner, token, mode }: LockEvent & { readonly token: number }): string {
  return mode === undefined ? `${owner} ${token} ${lockName}` : `${owner} ${lockName}`;
}
