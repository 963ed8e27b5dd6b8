/** A set of small whole numbers that maintains its own hash. */
export class Bitset {
  readonly #words: Uint32Array;
  /** The hash of the members, independent of their order. */
  hash = 0;

  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32));
  }

  /** Adds the member if it is absent, removes it otherwise. */
  flip(member: number): void {
    const word = member >>> 5;
    this.#words[word] = (this.#words[word] ?? 0) ^ (1 << (member & 31));
    this.hash ^= scatter(member);
  }

  /** Whether the number is a member. */
  has(member: number): boolean {
    return (((this.#words[member >>> 5] ?? 0) >>> (member & 31)) & 1) === 1;
  }

  /** A copy of the members, for a later comparison. */
  snapshot(): Uint32Array {
    return this.#words.slice();
  }

  /** Whether the members equal the snapshot. */
  equals(snapshot: Uint32Array): boolean {
    return snapshot.every((word, index) => word === this.#words[index]);
  }

  /** Whether every member of the snapshot is a member now. */
  contains(snapshot: Uint32Array): boolean {
    return snapshot.every((word, index) => (word & ~(this.#words[index] ?? 0)) === 0);
  }

  /** Whether every member is in the snapshot. */
  isWithin(snapshot: Uint32Array): boolean {
    return snapshot.every((word, index) => ((this.#words[index] ?? 0) & ~word) === 0);
  }
}

/** Spreads neighboring numbers over all 32 bits, so that the XOR of many stays spread. */
function scatter(member: number): number {
  let bits = Math.imul(member + 1, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
