import type { Bitset } from "./bitset.js";

interface Entry {
  readonly done: Uint32Array;
  readonly state: number;
  /** Sets of open operations with which it was reached, none of which contains another. */
  used: Uint32Array[];
}

/**
 * Lowe's cache: which operations were already in the order, together with the state they led to.
 *
 * Operations of unknown outcome are kept apart. Whoever used fewer of them to come to the same point can do all that
 * one who used more can, so only the smallest sets are remembered and only they are followed.
 */
export class Seen {
  readonly #buckets = new Map<number, Entry[]>();
  readonly #states = new Map<string, number>();
  #size = 0;

  /** How many new points of a search it has seen. */
  get size(): number {
    return this.#size;
  }

  /** Remembers the point; false if whatever follows from it was tried already. */
  add(done: Bitset, used: Bitset, stateKey: string): boolean {
    const state = this.#number(stateKey);
    const hash = done.hash ^ Math.imul(state, 0x9e3779b1);
    const bucket = this.#buckets.get(hash);
    const entry = bucket?.find((candidate) => candidate.state === state && done.equals(candidate.done));
    if (entry?.used.some((smaller) => used.contains(smaller))) return false;
    this.#size += 1;
    const now = used.snapshot();
    if (entry !== undefined) entry.used = [...entry.used.filter((larger) => !used.isWithin(larger)), now];
    else if (bucket !== undefined) bucket.push({ done: done.snapshot(), state, used: [now] });
    else this.#buckets.set(hash, [{ done: done.snapshot(), state, used: [now] }]);
    return true;
  }

  /** States come again and again, so each text is kept once. */
  #number(stateKey: string): number {
    const known = this.#states.get(stateKey);
    if (known !== undefined) return known;
    const next = this.#states.size;
    this.#states.set(stateKey, next);
    return next;
  }
}
