import type { Bytes } from "./bytes.js";

/** One member with its score. */
export interface Scored {
  readonly member: Bytes;
  readonly score: number;
}

/** Members in order of score, then of bytes. An array: fastest at the sizes of lock queues, and simplest. */
export class SortedSet {
  readonly #scores = new Map<Bytes, number>();
  #ordered: Scored[] = [];

  get size(): number {
    return this.#ordered.length;
  }

  /** All members in order. Not to be kept across a change. */
  get ordered(): readonly Scored[] {
    return this.#ordered;
  }

  score(member: Bytes): number | undefined {
    return this.#scores.get(member);
  }

  rank(member: Bytes): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#position(score, member);
  }

  set(member: Bytes, scoreOfAnySign: number): void {
    // A server keeps short sets as integers, which have no negative zero.
    const score = scoreOfAnySign + 0;
    this.remove(member);
    this.#scores.set(member, score);
    this.#ordered.splice(this.#position(score, member), 0, { member, score });
  }

  remove(member: Bytes): boolean {
    const rank = this.rank(member);
    if (rank === undefined) return false;
    this.removeRange(rank, 1);
    return true;
  }

  /** Takes out up to `count` members from `rank` on. */
  removeRange(rank: number, count: number): Scored[] {
    const removed = this.#ordered.splice(rank, count);
    for (const { member } of removed) this.#scores.delete(member);
    return removed;
  }

  /** How many members stand before (score, member). */
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
