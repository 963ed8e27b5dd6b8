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
 *
 * Lock names are data of the application: do not use them as metric labels without thought.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import type { LossReason } from "./errors.js";

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
}

/** `holdfast:release` */
export interface ReleaseEvent extends LockEvent {
  readonly token: number;
  readonly outcome: "released" | "expired-unclaimed" | "lost" | "unknown";
  /** From the grant to the release, in ms. */
  readonly heldMs: number;
}

/** The channels. Publish only after `hasSubscribers`, so that no message is built for nobody. */
export const channels: {
  readonly acquire: Channel;
  readonly wait: Channel;
  readonly grant: Channel;
  readonly renew: Channel;
  readonly lost: Channel;
  readonly release: Channel;
} = {
  acquire: channel("holdfast:acquire"),
  wait: channel("holdfast:wait"),
  grant: channel("holdfast:grant"),
  renew: channel("holdfast:renew"),
  lost: channel("holdfast:lost"),
  release: channel("holdfast:release"),
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
