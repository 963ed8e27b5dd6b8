import type { Operation } from "../history/records.js";
import { type ExpiryRules, leaseKey, mayBeOver, type ServerLease } from "./server-lease.js";

/** One holder's part of a lock that several may share. */
export interface Share {
  readonly owner: string;
  /** The number of permits, or of nested holds. */
  readonly count: number;
  readonly lease: ServerLease;
}

/** The shares as a sorted string, so that equal holders have equal keys. */
export function sharesKey(shares: readonly Share[]): string {
  return shares
    .map(({ owner, count, lease }) => `${owner} ${count} ${leaseKey(lease)}`)
    .sort()
    .join("\n");
}

/** Replaces the owner's share, or removes it if the count is 0. */
export function withShare(shares: readonly Share[], share: Share): Share[] {
  const others = shares.filter(({ owner }) => owner !== share.owner);
  return share.count > 0 ? [...others, share] : others;
}

/** The sum of all counts. */
export function total(shares: readonly Share[]): number {
  return shares.reduce((sum, { count }) => sum + count, 0);
}

/**
 * The shares that may be left if some have expired, so that their counts sum up to at most `most`.
 *
 * Only minimal sets expire: any other lease that may be over can expire later, in the operation that needs it.
 */
export function expiredDownTo(
  shares: readonly Share[],
  most: number,
  operation: Operation,
  expiry: ExpiryRules,
): Share[][] {
  const sure = shares.filter(({ lease }) => !mayBeOver(lease, operation, expiry));
  const unsure = shares.filter(({ lease }) => mayBeOver(lease, operation, expiry));
  const room = most - total(sure);
  if (room < 0) return [];
  const found: Share[][] = [];
  const choose = (index: number, kept: readonly Share[], dropped: readonly Share[]): void => {
    const share = unsure[index];
    if (share !== undefined) {
      if (total(kept) + share.count <= room) choose(index + 1, [...kept, share], dropped);
      choose(index + 1, kept, [...dropped, share]);
      return;
    }
    const free = room - total(kept);
    if (dropped.every(({ count }) => count > free)) found.push([...sure, ...kept]);
  };
  choose(0, [], []);
  return found;
}
