/** The constant properties of a claim, and when a claim may rely on its lease. */
import { LEASE_TICKS } from "./canonical.js";
import type { Claim, LockState } from "./lock-state.js";

/** The constant properties of a claim. */
export interface Place {
  readonly client: number;
  readonly weight: number;
  readonly owner: string;
  /** The protocol of its client. Protocol 0 does not confirm grants by message and assumes their full lease. */
  readonly protocol: 0 | 1;
  /** What the claim does besides holding; `plain` in worlds without roles. */
  readonly role: Role;
}

/** Whether the process of a claim is frozen. */
export function isFrozen(state: LockState, place: Place | undefined): boolean {
  return place !== undefined && state.frozen.includes(place.client);
}

/**
 * A `wait` claim waits for a signal with the hold of the claim before it. A `signal` or `signal-all` claim signals
 * one or all waiters while it holds. A `steal` claim steals the lock.
 * For a mutex, the process of a `retain` claim may retain it, a `try` claim asks once without waiting, and a `pause`
 * claim pauses the mutex.
 */
export type Role = "plain" | "wait" | "signal" | "signal-all" | "steal" | "retain" | "try" | "pause";

/** Whether a claim may rely on its lease according to its own clock. */
export function isValid(claim: Claim): boolean {
  return claim.set < LEASE_TICKS;
}
