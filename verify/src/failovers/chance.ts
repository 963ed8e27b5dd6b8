/** Pseudorandom numbers from a seed; the same seed gives the same numbers. */
export interface Chance {
  /** A number from `from` up to, but not including, `to`. */
  between(from: number, to: number): number;
}

/** Creates a linear congruential generator modulo 2^32; only the high bits are used. */
export function chanceOf(seed: number): Chance {
  let state = (Math.imul(seed, 2_654_435_761) + 12_345) >>> 0;
  return {
    between(from, to) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return from + ((state >>> 8) / 2 ** 24) * (to - from);
    },
  };
}
