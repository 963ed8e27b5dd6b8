import { groupBy, type History } from "../history/history.js";
import { type Claim, type Lease, leasesOf } from "../history/leases.js";
import type { Kind } from "../history/records.js";

/** Kinds with one owner at a time. */
export const EXCLUSIVE: ReadonlySet<Kind> = new Set(["mutex", "reentrant-mutex", "multi-lock", "election", "redlock"]);

/** A claim with its lease. */
export interface LeaseClaim extends Claim {
  readonly lease: Lease;
}

/** The claims on each lock of these kinds, by their start. */
export function claimsByLock(history: History, kinds: ReadonlySet<Kind>): Map<string, LeaseClaim[]> {
  const claims = leasesOf(history)
    .filter(({ acquire }) => kinds.has(acquire.kind))
    .flatMap((lease) => lease.claims.map((claim) => ({ ...claim, lease })));
  claims.sort((a, b) => a.startMs - b.startMs);
  return groupBy(claims, ({ lease }) => lease.acquire.lockName);
}

/** Whether both belong to the same holder; holding twice is then not a conflict. */
export function isSameHolder(a: LeaseClaim, b: LeaseClaim): boolean {
  if (a.lease === b.lease) return true;
  return a.lease.acquire.kind === "reentrant-mutex" && a.lease.acquire.owner === b.lease.acquire.owner;
}

/**
 * Calls `visit` with each claim and the earlier claims that overlap with it.
 *
 * A claim that ends at the instant at which another begins does not overlap. Takes n log n steps plus the number of
 * overlaps.
 */
export function sweepOverlaps<Item extends Claim>(
  claims: readonly Item[],
  visit: (claim: Item, running: readonly Item[]) => void,
): void {
  let running: Item[] = [];
  for (const claim of claims) {
    running = running.filter(({ endMs }) => endMs > claim.startMs);
    visit(claim, running);
    running.push(claim);
  }
}
