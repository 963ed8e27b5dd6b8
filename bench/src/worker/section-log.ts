/** The number of numbers per section in the log, see `CrowdDone`. */
export const NUMBERS_PER_SECTION = 4;

const FIRST_CAPACITY = 1 << 16;

/** Sections in order of their end. It allocates no object per section, because there may be half a million. */
export class SectionLog {
  #numbers: Float64Array = new Float64Array(FIRST_CAPACITY);
  #length = 0;

  /** Records a section. */
  add(caller: number, askedAtMs: number, startedAtMs: number, endedAtMs: number): void {
    if (this.#length + NUMBERS_PER_SECTION > this.#numbers.length) this.#grow();
    this.#numbers[this.#length] = caller;
    this.#numbers[this.#length + 1] = askedAtMs;
    this.#numbers[this.#length + 2] = startedAtMs;
    this.#numbers[this.#length + 3] = endedAtMs;
    this.#length += NUMBERS_PER_SECTION;
  }

  /** All sections, with four numbers each. */
  toArray(): Float64Array {
    return this.#numbers.slice(0, this.#length);
  }

  #grow(): void {
    const larger = new Float64Array(this.#numbers.length * 2);
    larger.set(this.#numbers);
    this.#numbers = larger;
  }
}
