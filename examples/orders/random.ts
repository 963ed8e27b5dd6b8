/**
 * Reproducible random numbers: the same seed gives the same numbers on every machine.
 *
 * The load and the gateway's delays use them, so that two runs differ only in the use of the key.
 */

/**
 * A generator of numbers from 0 up to, but not including, 1.
 *
 * A counter through all 2^32 states, each scrambled with multiplications and shifts. Good enough for a load, but not
 * for secrets.
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}

/** Computes a seed from a string, so that a payment is equally slow in every run. */
export function seedOf(text: string): number {
  let seed = 0;
  for (const character of text) seed = (Math.imul(seed, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return seed;
}

/** A whole number from `lowest` to `highest`, inclusive. */
export function integerBetween(random: () => number, lowest: number, highest: number): number {
  return lowest + Math.floor(random() * (highest - lowest + 1));
}
