import type { Bitset } from "./bitset.js";

interface Entry {
  readonly done: Uint32Array;
  readonly state: number;
  /** The minimal sets of open operations with which this point was reached; none contains another. */
  used: Uint32Array[];
}

/**
 * Lowe's cache: which operations were already ordered, and the state that they led to.
 *
 * Operations with an unknown outcome are stored separately. An order that used fewer of them can do everything that
 * an order that used more can, so only minimal sets are stored and followed.
 */
export class Seen {
  readonly #buckets = new Map<number, Entry[]>();
  readonly #states = new Map<string, number>();
  #size = 0;

  /** The number of distinct points seen. */
  get size(): number {
    return this.#size;
  }

  /** Records a point; returns false if it was already explored. */
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

  /** Maps the key of a state to a number, so that each key is stored once. */
  #number(stateKey: string): number {
    const known = this.#states.get(stateKey);
    if (known !== undefined) return known;
    const next = this.#states.size;
    this.#states.set(stateKey, next);
    return next;
  }
}
