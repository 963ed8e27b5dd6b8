/** Glob patterns for names, as in SCAN and KEYS: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` to escape a character. */
import { show } from "../core/keys.js";

/** A parsed pattern. */
export interface Glob {
  /** Whether the pattern matches a name. */
  matches(name: string): boolean;
  /** The longest string without wildcards that every matching name contains. May be empty. */
  readonly literal: string;
}

type Part = "star" | { readonly fits: (character: string) => boolean; readonly literal: string | undefined };

/**
 * Parses a pattern.
 *
 * Matching backtracks only to the last star, so its time is at most proportional to the length of the pattern times the
 * length of the name.
 *
 * @throws TypeError  `pattern` is not a string
 */
export function readGlob(pattern: unknown): Glob {
  if (typeof pattern !== "string")
    throw new TypeError(`pattern must be a string such as "order:*"; got ${show(pattern)}`);
  const parts = partsOf(Array.from(pattern));
  return { matches: (name) => matches(parts, Array.from(name)), literal: longestLiteral(parts) };
}

/** Returns the pattern that matches only this name. */
export function exactly(name: string): string {
  return name.replace(/[\\*?[]/g, "\\$&");
}

function matches(parts: readonly Part[], name: readonly string[]): boolean {
  let part = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    const wanted = parts[part];
    if (wanted === "star") {
      star = part;
      starAt = at;
      part += 1;
    } else if (wanted?.fits(name[at] ?? "") === true) {
      part += 1;
      at += 1;
    } else if (star >= 0) {
      part = star + 1;
      starAt += 1;
      at = starAt;
    } else return false;
  }
  return parts.slice(part).every((rest) => rest === "star");
}

function partsOf(characters: readonly string[]): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    if (character === "*") {
      if (parts.at(-1) !== "star") parts.push("star");
    } else if (character === "?") {
      parts.push({ fits: () => true, literal: undefined });
    } else if (character === "[") {
      const { fits, end } = readClass(characters, at + 1);
      parts.push({ fits, literal: undefined });
      at = end;
    } else {
      const isEscape = character === "\\" && at + 1 < characters.length;
      if (isEscape) at += 1;
      const wanted = characters[at] ?? "";
      parts.push({ fits: (one) => one === wanted, literal: wanted });
    }
  }
  return parts;
}

/** Parses a character class as the server does: a class without a closing bracket extends to the end of the pattern. */
function readClass(
  characters: readonly string[],
  start: number,
): { fits: (character: string) => boolean; end: number } {
  const isNegated = characters[start] === "^";
  const ranges: [from: string, to: string][] = [];
  let at = isNegated ? start + 1 : start;
  for (; at < characters.length && characters[at] !== "]"; at += 1) {
    if (characters[at] === "\\" && at + 1 < characters.length) at += 1;
    const from = characters[at] ?? "";
    const to = characters[at + 1] === "-" ? characters[at + 2] : undefined;
    if (to === undefined) ranges.push([from, from]);
    else {
      ranges.push(from <= to ? [from, to] : [to, from]);
      at += 2;
    }
  }
  return { fits: (one) => ranges.some(([from, to]) => from <= one && one <= to) !== isNegated, end: at };
}

function longestLiteral(parts: readonly Part[]): string {
  let longest = "";
  let present = "";
  for (const part of parts) {
    present = part === "star" || part.literal === undefined ? "" : present + part.literal;
    if (present.length > longest.length) longest = present;
  }
  return longest;
}
