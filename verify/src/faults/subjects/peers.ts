/** The libraries that Holdfast is compared with in the same runs, and the cells that each of them can run. */
import type { Cell, Letter } from "../cell.js";
import { SINGLE, SINGLE_CELLS } from "../matrix.js";
import type { Subject } from "../subject.js";

/** The peers by name. Each is loaded only when a run selects it. */
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

/** The key in which a peer stores a lock. @throws RangeError  unknown peer */
export function peerKey(peer: string, letter: Letter, lockName: string): string {
  const prefixOf = Object.hasOwn(KEY_PREFIXES, peer) ? KEY_PREFIXES[peer] : undefined;
  if (prefixOf === undefined) throw new RangeError(`there is no peer ${peer}`);
  return `${prefixOf(letter)}${lockName}`;
}

/** The key of the counter for a peer's tokens. @throws RangeError  the peer has no tokens */
export function peerFenceKey(peer: string): string {
  if (peer === "simple-redis-mutex") return "@simple-redis-mutex:fencing-tokens";
  throw new RangeError(`${peer} has no tokens`);
}

/** What a peer reports about its own lease. Only this is judged. */
export interface Words {
  /** Whether it has a method that tells if a lease is held. */
  readonly held: boolean;
  /** Whether it reports when a lease ends. */
  readonly validity: boolean;
  /** The letters for which it reports a loss on its own. */
  readonly signal: readonly Letter[];
}

const WORDS: Readonly<Record<string, Words>> = {
  redlock: { held: true, validity: true, signal: ["a"] },
  "redis-semaphore": { held: true, validity: false, signal: ["a"] },
  verrou: { held: true, validity: true, signal: [] },
  "simple-redis-mutex": { held: false, validity: false, signal: [] },
};

/** See `Words`. @throws RangeError  unknown peer */
export function wordsOf(peer: string): Words {
  const words = Object.hasOwn(WORDS, peer) ? WORDS[peer] : undefined;
  if (words === undefined) throw new RangeError(`there is no peer ${peer}`);
  return words;
}

/** Peers that are notified; the others have no subscriber that could be killed and no message that could be dropped. */
const NOTIFIED: ReadonlySet<string> = new Set(["simple-redis-mutex"]);

/**
 * The cells that a peer runs: those of the matrix for the letters that it supports, and for each other letter the mutex
 * instead, once per fault and server.
 *
 * Cells that would say nothing about a peer are left out: wall clock steps and suspensions, which need a client with an
 * injectable clock; a start-up check that it does not have; seeded counters; and tokens if it has none.
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

/** Mutex cells that the matrix does not have. Peers run them instead of cells of a letter that they lack. */
export const STAND_INS: readonly Cell[] = standIns();

function standIns(): Cell[] {
  const cells = SINGLE_CELLS.filter(({ judged }) => judged === "leases").map((cell) => inLetter(cell, "m"));
  const known = new Set(SINGLE_CELLS.map(({ id }) => id));
  return [...new Map(cells.map((cell) => [cell.id, cell])).values()].filter(({ id }) => !known.has(id));
}

function letterFor({ name, letters }: Pick<Subject, "name" | "letters">, cell: Cell): Letter | undefined {
  if (/^(?:J06|J07|J36g)$|-seeded$/.test(cell.row)) return undefined;
  // It needs a signal for lost leases. Peers that renew, and so have one, show it in other cells.
  if (cell.row === "L06") return undefined;
  if (/^(?:J1[67]|L0[345])$/.test(cell.row) && !NOTIFIED.has(name)) return undefined;
  if (letters.includes(cell.letter)) return cell.letter;
  if (cell.judged === "leases") return "m";
  // Without tokens, there is nothing to judge in the rows about tokens, and effects cannot be fenced.
  return undefined;
}
