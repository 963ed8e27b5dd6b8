/**
 * What happens to locks, on `node:diagnostics_channel`. Nothing is built or sent while nobody listens.
 *
 * | channel | published |
 * |---|---|
 * | `holdfast:acquire` | an acquire begins |
 * | `holdfast:wait` | the lock was taken; the caller waits |
 * | `holdfast:grant` | a lease begins |
 * | `holdfast:renew` | a renewal was confirmed, or failed and will be tried again |
 * | `holdfast:lost` | a lease ended before it was released |
 * | `holdfast:release` | a lease was released |
 * | `holdfast:forced` | this process has taken a lock away from its holder |
 * | `holdfast:pause` | this process has paused a lock |
 * | `holdfast:resume` | this process has ended a pause |
 * | `holdfast:idempotency` | a request with an `Idempotency-Key` was answered; made in integrations/http/events.ts |
 *
 * Lock names are data of the application: do not use them as metric labels without thought.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import type { Forced, LossReason, Pause } from "./errors.js";

/** What every message says. */
export interface LockEvent {
  readonly kind: string;
  readonly lockName: string;
  readonly owner: string;
}

/** `holdfast:acquire` */
export interface AcquireEvent extends LockEvent {
  readonly waitMs: number;
  readonly leaseMs: number;
}

/** `holdfast:wait` */
export interface WaitEvent extends LockEvent {
  /** True if the caller stands in the server's queue; false if it cannot listen now, and asks again by itself. */
  readonly queued: boolean;
}

/** `holdfast:grant` */
export interface GrantEvent extends LockEvent {
  readonly token: number;
  /** From the call to the grant, in ms. */
  readonly waitedMs: number;
  /** The `key` option of the lock; absent if it has none. */
  readonly key?: string;
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
  readonly outcome: "released" | "expired-unclaimed" | "lost" | "unknown";
  /** From the grant to the release, in ms. */
  readonly heldMs: number;
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
  readonly pause: Pause;
}

/** `holdfast:resume`. `owner` is the claim of the pause. */
export interface ResumeEvent extends DeedEvent {
  readonly pause: Pause;
  /** Who resumed, in their own words. */
  readonly by: string;
  readonly pausedForMs: number;
  /** How many were waiting. */
  readonly waiterCount: number;
}

/** The channels. Publish only after `hasSubscribers`, so that no message is built for nobody. */
export const channels: {
  readonly acquire: Channel;
  readonly wait: Channel;
  readonly grant: Channel;
  readonly renew: Channel;
  readonly lost: Channel;
  readonly release: Channel;
  readonly forced: Channel;
  readonly pause: Channel;
  readonly resume: Channel;
} = {
  acquire: channel("holdfast:acquire"),
  wait: channel("holdfast:wait"),
  grant: channel("holdfast:grant"),
  renew: channel("holdfast:renew"),
  lost: channel("holdfast:lost"),
  release: channel("holdfast:release"),
  forced: channel("holdfast:forced"),
  pause: channel("holdfast:pause"),
  resume: channel("holdfast:resume"),
};

/** A claim, whose id is made when it is asked for. */
interface Named {
  readonly owner: string;
}

/** Somebody waits behind that claim. */
export function publishWait({ kind, name }: { kind: string; name: string }, claim: Named, queued: boolean): void {
  if (!channels.wait.hasSubscribers) return;
  const event: WaitEvent = { kind, lockName: name, owner: claim.owner, queued };
  channels.wait.publish(event);
}

/** Somebody has called for a lock, behind that claim. */
export function publishAcquire(
  { kind, name }: { kind: string; name: string },
  claim: Named,
  { waitMs, leaseMs }: { waitMs: number; leaseMs: number },
): void {
  if (!channels.acquire.hasSubscribers) return;
  const event: AcquireEvent = { kind, lockName: name, owner: claim.owner, waitMs, leaseMs };
  channels.acquire.publish(event);
}
