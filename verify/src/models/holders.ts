import type { Operation } from "../history/records.js";
import { type ExpiryRules, leaseKey, mayBeOver, type ServerLease } from "./server-lease.js";

/** One holder's part of a lock that several may share. */
export interface Share {
  readonly owner: string;
  /** Permits, or how often it is held. */
  readonly count: number;
  readonly lease: ServerLease;
}

/** The shares, sorted so that the same holders have the same text. */
export function sharesKey(shares: readonly Share[]): string {
  return shares
    .map(({ owner, count, lease }) => `${owner} ${count} ${leaseKey(lease)}`)
    .sort()
    .join("\n");
}

/** The shares with this one in place of its owner's, or without its owner's if it has no count. */
export function withShare(shares: readonly Share[], share: Share): Share[] {
  const others = shares.filter(({ owner }) => owner !== share.owner);
  return share.count > 0 ? [...others, share] : others;
}

/** How many a lock's holders have together. */
export function total(shares: readonly Share[]): number {
  return shares.reduce((sum, { count }) => sum + count, 0);
}

/**
 * What can be left of the shares when some have expired, so that at most `most` remain in count.
 *
 * Only smallest sets expire: whatever else may be over can still be found so by the operation that needs it.
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
