/**
 * Random numbers that can be replayed: the same seed gives the same numbers on every machine.
 *
 * The load and the gateway's delays come from here, so that two runs differ by the key and by nothing else.
 */

/**
 * A generator of numbers from 0 up to, but not including, 1.
 *
 * A counter that goes round all 2^32 states, each one scrambled by multiplying and folding. Good enough to
 * spread a load; not for secrets.
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

/** A seed made from text, so that one payment is equally slow in every run. */
export function seedOf(text: string): number {
  let seed = 0;
  for (const character of text) seed = (Math.imul(seed, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return seed;
}

/** A whole number from `lowest` to `highest`, both included. */
export function integerBetween(random: () => number, lowest: number, highest: number): number {
  return lowest + Math.floor(random() * (highest - lowest + 1));
}
