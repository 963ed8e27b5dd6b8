/**
 * Pseudorandom numbers: the same seed gives the same run on every machine and version of Node.
 *
 * The generator is Marsaglia's xorshift with 128 bits of state, initialized by a well-mixed Weyl sequence, so that
 * neighboring seeds are unrelated.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed  any whole number; only its lower 53 bits are used */
  constructor(seed: number) {
    let weyl = (seed >>> 0) ^ Math.imul(Math.floor(seed / 4_294_967_296), 0x85eb_ca6b);
    const next = (): number => {
      weyl = (weyl + 0x9e37_79b9) | 0;
      let mixed = Math.imul(weyl ^ (weyl >>> 16), 0x21f0_aaad);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a_2d97);
      return mixed ^ (mixed >>> 15);
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1;
  }

  /** A number from 0 up to, but not including, 1. */
  next(): number {
    let mixed = this.#d;
    const front = this.#a;
    this.#d = this.#c;
    this.#c = this.#b;
    this.#b = front;
    mixed ^= mixed << 11;
    mixed ^= mixed >>> 8;
    this.#a = mixed ^ front ^ (front >>> 19);
    return (this.#a >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** A number from `min` to `max`. */
  between(min: number, max: number): number {
    return min + this.next() * (max - min);
  }

  /** True with that probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A random item. @throws RangeError  the list is empty */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.whole(0, items.length - 1)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  /** An independent generator, so that draws of one part do not affect those of another. */
  fork(): Random {
    return new Random(this.whole(0, 0x7fff_ffff) * 65_536 + this.whole(0, 65_535));
  }
}
