/** The libraries that this one is compared with in the same runs, and which cells each of them can take. */
import type { Cell, Letter } from "../cell.js";
import { SINGLE, SINGLE_CELLS } from "../matrix.js";
import type { Subject } from "../subject.js";

/** By the name that a run is asked for; each is loaded only when it is. */
export const PEERS: Readonly<Record<string, () => Promise<{ readonly subject: Subject }>>> = {
  redlock: () => import("./redlock.js"),
  "redis-semaphore": () => import("./redis-semaphore.js"),
  verrou: () => import("./verrou.js"),
  "simple-redis-mutex": () => import("./simple-redis-mutex.js"),
};

const KEY_PREFIXES: Readonly<Record<string, (letter: Letter) => string>> = {
  redlock: () => "",
  "redis-semaphore": (letter) => (letter === "s" ? "semaphore:" : "mutex:"),
  verrou: () => "",
  "simple-redis-mutex": () => "@simple-redis-mutex:lock-",
};

/** The key in which a peer keeps a lock. @throws RangeError  there is no peer of that name */
export function peerKey(peer: string, letter: Letter, lockName: string): string {
  const prefixOf = Object.hasOwn(KEY_PREFIXES, peer) ? KEY_PREFIXES[peer] : undefined;
  if (prefixOf === undefined) throw new RangeError(`there is no peer ${peer}`);
  return `${prefixOf(letter)}${lockName}`;
}

/** The key of the counter that the tokens of a peer come from. @throws RangeError  it has none */
export function peerFenceKey(peer: string): string {
  if (peer === "simple-redis-mutex") return "@simple-redis-mutex:fencing-tokens";
  throw new RangeError(`${peer} has no tokens`);
}

/** What a peer reports about its own lease. Only this is judged. */
export interface Words {
  /** Whether it can be asked if a lease is held. */
  readonly held: boolean;
  /** Whether it says until when. */
  readonly validity: boolean;
  /** For which letters it tells of a loss by itself. */
  readonly signal: readonly Letter[];
}

const WORDS: Readonly<Record<string, Words>> = {
  redlock: { held: true, validity: true, signal: ["a"] },
  "redis-semaphore": { held: true, validity: false, signal: ["a"] },
  verrou: { held: true, validity: true, signal: [] },
  "simple-redis-mutex": { held: false, validity: false, signal: [] },
};

/** See `Words`. @throws RangeError  there is no peer of that name */
export function wordsOf(peer: string): Words {
  const words = Object.hasOwn(WORDS, peer) ? WORDS[peer] : undefined;
  if (words === undefined) throw new RangeError(`there is no peer ${peer}`);
  return words;
}

/** Peers that are notified; the others have no subscriber that could be killed and no message that could be dropped. */
const NOTIFIED: ReadonlySet<string> = new Set(["simple-redis-mutex"]);

/**
 * The cells that a peer takes: those that the matrix has for a letter of its own, and for a letter that it lacks the
 * mutex in its place, once per fault and server.
 *
 * Left out is what would say nothing about it: a wall clock or a suspension that only a client with a clock of its own
 * can be given, a check at the start that it does not claim to have, counters that are seeded, tokens where it has none.
 */
export function peerCells(
  subject: Pick<Subject, "name" | "letters">,
  among: readonly Cell[] = SINGLE_CELLS,
): readonly Cell[] {
  const cells = new Map<string, Cell>();
  for (const cell of among) {
    const letter = SINGLE.has(cell.column) ? letterFor(subject, cell) : undefined;
    if (letter === undefined) continue;
    const of = inLetter(cell, letter);
    if (!cells.has(of.id)) cells.set(of.id, of);
  }
  return [...cells.values()];
}

function inLetter(cell: Cell, letter: Letter): Cell {
  return { ...cell, id: `${cell.row}/${cell.column}/${letter}`, letter, isQuick: false };
}

/** Cells of a mutex that the matrix does not have, and that peers take in place of one of a letter that they lack. */
export const STAND_INS: readonly Cell[] = standIns();

function standIns(): Cell[] {
  const cells = SINGLE_CELLS.filter(({ judged }) => judged === "leases").map((cell) => inLetter(cell, "m"));
  const known = new Set(SINGLE_CELLS.map(({ id }) => id));
  return [...new Map(cells.map((cell) => [cell.id, cell])).values()].filter(({ id }) => !known.has(id));
}

function letterFor({ name, letters }: Pick<Subject, "name" | "letters">, cell: Cell): Letter | undefined {
  if (/^(?:J06|J07|J36g)$|-seeded$/.test(cell.row)) return undefined;
  // Without a word of a loss there is nothing to see in it, and who renews tells of one in other cells.
  if (cell.row === "L06") return undefined;
  if (/^(?:J1[67]|L0[345])$/.test(cell.row) && !NOTIFIED.has(name)) return undefined;
  if (letters.includes(cell.letter)) return cell.letter;
  if (cell.judged === "leases") return "m";
  // Without a token there is nothing to judge in the rows about tokens, nor to fence effects with.
  return undefined;
}
