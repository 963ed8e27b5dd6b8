/**
 * Returns the word that is the fewest edits away from the typed one; undefined if that takes more than two edits. There
 * must also be fewer edits than typed letters, because two edits turn any two-letter word into any other.
 */
export function closestTo(typed: string, words: readonly string[]): string | undefined {
  const [closest] = words
    .map((word) => ({ word, edits: editsBetween(typed, word) }))
    .filter(({ edits }) => edits <= Math.min(2, typed.length - 1))
    .toSorted((one, other) => one.edits - other.edits);
  return closest?.word;
}

/** Returns the number of letters to insert, remove or replace to turn one word into the other (Levenshtein 1965). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
