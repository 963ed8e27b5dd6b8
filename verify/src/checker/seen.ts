import type { Bitset } from "./bitset.js";

interface Entry {
  readonly members: Uint32Array;
  readonly state: number;
}

/** Lowe's cache: which operations were already in the order, together with the state they led to. */
export class Seen {
  readonly #buckets = new Map<number, Entry[]>();
  readonly #states = new Map<string, number>();
  #size = 0;

  /** How many different pairs it has seen. */
  get size(): number {
    return this.#size;
  }

  /** Remembers the pair; false if it was there before, so that whatever follows from it was tried already. */
  add(members: Bitset, stateKey: string): boolean {
    const state = this.#number(stateKey);
    const hash = members.hash ^ Math.imul(state, 0x9e3779b1);
    const bucket = this.#buckets.get(hash);
    if (bucket?.some((entry) => entry.state === state && members.equals(entry.members))) return false;
    const entry = { members: members.snapshot(), state };
    if (bucket === undefined) this.#buckets.set(hash, [entry]);
    else bucket.push(entry);
    this.#size += 1;
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
