import type { Bytes } from "./bytes.js";

/** A member of a sorted set with its score. */
export interface Scored {
  readonly member: Bytes;
  readonly score: number;
}

/**
 * A sorted set: members ordered by score, then by bytes. Uses an array, which is the simplest structure, and the
 * fastest one at the typical size of a lock queue.
 */
export class SortedSet {
  readonly #scores = new Map<Bytes, number>();
  #ordered: Scored[] = [];

  get size(): number {
    return this.#ordered.length;
  }

  /** All members in order. Do not keep the array after the set changes. */
  get ordered(): readonly Scored[] {
    return this.#ordered;
  }

  /** Returns the score of a member; undefined if it is not in the set. */
  score(member: Bytes): number | undefined {
    return this.#scores.get(member);
  }

  /** Returns the position of a member, from 0; undefined if it is not in the set. */
  rank(member: Bytes): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#position(score, member);
  }

  /** Adds a member or changes its score. */
  set(member: Bytes, scoreOfAnySign: number): void {
    // A server stores the scores of short sets as integers, which have no negative zero.
    const score = scoreOfAnySign + 0;
    this.remove(member);
    this.#scores.set(member, score);
    this.#ordered.splice(this.#position(score, member), 0, { member, score });
  }

  /** Removes a member. Returns whether it was in the set. */
  remove(member: Bytes): boolean {
    const rank = this.rank(member);
    if (rank === undefined) return false;
    this.removeRange(rank, 1);
    return true;
  }

  /** Removes and returns up to `count` members, starting at `rank`. */
  removeRange(rank: number, count: number): Scored[] {
    const removed = this.#ordered.splice(rank, count);
    for (const { member } of removed) this.#scores.delete(member);
    return removed;
  }

  /** Returns the number of members that come before (score, member). */
  #position(score: number, member: Bytes): number {
    let low = 0;
    let high = this.#ordered.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.#ordered[middle] as Scored; // middle < high <= length
      if (at.score < score || (at.score === score && at.member < member)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
