/** A set of small whole numbers that knows its own hash at every moment. */
export class Bitset {
  readonly #words: Uint32Array;
  /** Of the members, whatever the order in which they came. */
  hash = 0;

  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32));
  }

  /** Adds a member that is not in it, or takes out one that is. */
  flip(member: number): void {
    const word = member >>> 5;
    this.#words[word] = (this.#words[word] ?? 0) ^ (1 << (member & 31));
    this.hash ^= scatter(member);
  }

  /** The members now, to compare with later. */
  snapshot(): Uint32Array {
    return this.#words.slice();
  }

  /** Whether the members are those of the snapshot. */
  equals(snapshot: Uint32Array): boolean {
    for (let word = 0; word < snapshot.length; word += 1) if (snapshot[word] !== this.#words[word]) return false;
    return true;
  }
}

/** Spreads neighbouring numbers over all 32 bits, so that the XOR of many stays spread. */
function scatter(member: number): number {
  let bits = Math.imul(member + 1, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
