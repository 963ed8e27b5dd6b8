/**
 * A set of seen states that stores a 64-bit hash of each. With ten million states, the chance that any two share a hash
 * is about one in 400 000, and the hashes still fit in memory.
 */

/** A growing list of 32-bit integers. */
export class Numbers {
  #values = new Int32Array(1024);
  length = 0;

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = new Int32Array(this.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.length++] = value;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }
}

/** The set of seen states. States are numbered from 0, in the order in which they were added. */
export class SeenStates {
  readonly #high = new Numbers();
  readonly #low = new Numbers();
  #slots = new Int32Array(1 << 16).fill(-1);

  /** The number of states. */
  get size(): number {
    return this.#high.length;
  }

  /** Adds a state and returns its number. If the state is new, that is the previous `size`. */
  add(text: string): number {
    const [high, low] = hash(text);
    const at = this.#find(this.#slots, high, low);
    const known = this.#slots[at] ?? -1;
    if (known >= 0) return known;
    const number = this.size;
    this.#slots[at] = number;
    this.#high.push(high);
    this.#low.push(low);
    if (this.size * 2 > this.#slots.length) this.#grow();
    return number;
  }

  /** Whether the state `number` has the hash of `text`. */
  is(number: number, text: string): boolean {
    const [high, low] = hash(text);
    return this.#high.at(number) === high && this.#low.at(number) === low;
  }

  #find(slots: Int32Array, high: number, low: number): number {
    const mask = slots.length - 1;
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const number = slots[at] ?? -1;
      if (number < 0 || (this.#high.at(number) === high && this.#low.at(number) === low)) return at;
    }
  }

  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 4).fill(-1);
    for (let number = 0; number < this.size; number++) {
      slots[this.#find(slots, this.#high.at(number), this.#low.at(number))] = number;
    }
    this.#slots = slots;
  }
}

/** Two independent 32-bit hashes of all characters. */
function hash(text: string): readonly [number, number] {
  let one = 0x9e3779b9;
  let two = 0x7f4a7c15;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    one = Math.imul(one ^ code, 0x85ebca6b);
    one ^= one >>> 15;
    two = Math.imul(two ^ code, 0xc2b2ae35);
    two ^= two >>> 13;
  }
  return [Math.imul(one ^ (two >>> 16), 0x27d4eb2f) | 0, Math.imul(two ^ (one >>> 15), 0x165667b1) | 0];
}
