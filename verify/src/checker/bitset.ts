/** A set of small whole numbers that knows its own hash at every moment. */
export class Bitset {
  readonly #words: Uint32Array;
  /** Of the members, whatever the order in which they came. */
  hash = 0;

  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32));
  }

  /** Adds the member if it is absent, else removes it. */
  flip(member: number): void {
    const word = member >>> 5;
    this.#words[word] = (this.#words[word] ?? 0) ^ (1 << (member & 31));
    this.hash ^= scatter(member);
  }

  /** Whether it is a member. */
  has(member: number): boolean {
    return (((this.#words[member >>> 5] ?? 0) >>> (member & 31)) & 1) === 1;
  }

  /** The members now, to compare with later. */
  snapshot(): Uint32Array {
    return this.#words.slice();
  }

  /** Whether the members are those of the snapshot. */
  equals(snapshot: Uint32Array): boolean {
    return snapshot.every((word, index) => word === this.#words[index]);
  }

  /** Whether all that are in the snapshot are members. */
  contains(snapshot: Uint32Array): boolean {
    return snapshot.every((word, index) => (word & ~(this.#words[index] ?? 0)) === 0);
  }

  /** Whether all members are in the snapshot. */
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
