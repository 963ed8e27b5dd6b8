/** What a claim is before it begins, and when it may rely on its lease. */
import { LEASE_TICKS } from "./canonical.js";
import type { Claim, LockState } from "./lock-state.js";

/** Of a claim its client, its weight, its owner id. */
export interface Place {
  readonly client: number;
  readonly weight: number;
  readonly owner: string;
  /** Protocol of its client. Protocol 0 does not confirm grants by message, and counts its full lease for them. */
  readonly protocol: 0 | 1;
  /** What the claim does beside holding; `plain` in worlds that know nothing else. */
  readonly role: Role;
}

/** Whether the process of a claim is frozen. */
export function isFrozen(state: LockState, place: Place | undefined): boolean {
  return place !== undefined && state.frozen.includes(place.client);
}

/** A claim waits for a signal, by the hold of the claim before it; signals one or all who wait, as it holds; or steals the lock. */
export type Role = "plain" | "wait" | "signal" | "signal-all" | "steal";

/** Whether a claim may rely on its lease, by its own clock. */
export function isValid(claim: Claim): boolean {
  return claim.set < LEASE_TICKS;
}
