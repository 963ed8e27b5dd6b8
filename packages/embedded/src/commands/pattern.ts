/** Matches keys against glob patterns, as the server does: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` to escape a byte. */
import type { Bytes } from "../bytes.js";

/**
 * Whether the pattern matches all of `text`. Backtracks only to the last `*`: if that fails, an earlier one fails too.
 */
export function fits(pattern: Bytes, text: Bytes): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let starAt = 0;
  while (t < text.length) {
    if (pattern[p] === "*") {
      star = p;
      starAt = t;
      p += 1;
      continue;
    }
    const end = p < pattern.length ? fitsOne(pattern, p, text.charAt(t)) : undefined;
    if (end !== undefined) {
      p = end;
      t += 1;
    } else if (star >= 0) {
      p = star + 1;
      starAt += 1;
      t = starAt;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(p));
}

/** If the pattern element at `p` matches the byte, returns the index of the next element; otherwise undefined. */
function fitsOne(pattern: Bytes, p: number, byte: Bytes): number | undefined {
  const head = pattern.charAt(p);
  if (head === "?") return p + 1;
  if (head === "[") return fitsClass(pattern, p + 1, byte);
  const isEscape = head === "\\" && p + 1 < pattern.length;
  const wanted = isEscape ? pattern.charAt(p + 1) : head;
  return wanted === byte ? p + (isEscape ? 2 : 1) : undefined;
}

/** Like `fitsOne`, for a class that begins at `start`. A class without `]` extends to the end of the pattern. */
function fitsClass(pattern: Bytes, start: number, byte: Bytes): number | undefined {
  const isNegated = pattern[start] === "^";
  let isIn = false;
  let p = isNegated ? start + 1 : start;
  for (; p < pattern.length && pattern[p] !== "]"; p += 1) {
    if (pattern[p] === "\\" && p + 1 < pattern.length) {
      p += 1;
      isIn ||= pattern[p] === byte;
    } else if (pattern[p + 1] === "-" && p + 2 < pattern.length) {
      const [from, to] = [pattern.charAt(p), pattern.charAt(p + 2)].sort() as [Bytes, Bytes];
      isIn ||= from <= byte && byte <= to;
      p += 2;
    } else isIn ||= pattern[p] === byte;
  }
  if (isIn === isNegated) return undefined;
  return Math.min(p + 1, pattern.length);
}
