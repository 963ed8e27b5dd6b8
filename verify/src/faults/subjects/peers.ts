/** The libraries that this one is compared with in the same runs, and which cells each of them can take. */
import type { Cell, Letter } from "../cell.js";
import { BUILT_CELLS } from "../matrix.js";
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

/** Peers that are notified; the others have no subscriber that could be killed and no message that could be dropped. */
const NOTIFIED: ReadonlySet<string> = new Set(["simple-redis-mutex"]);

/**
 * The cells that a peer takes: those that the matrix has for a letter of its own, and for a letter that it lacks the
 * mutex in its place, once per fault and server.
 *
 * Left out is what would say nothing about it: a wall clock or a suspension that only a client with a clock of its own
 * can be given, a check at the start that it does not claim to have, counters that are seeded, tokens where it has none.
 */
export function peerCells(subject: Pick<Subject, "name" | "letters">): readonly Cell[] {
  const cells = new Map<string, Cell>();
  for (const cell of BUILT_CELLS) {
    const letter = letterFor(subject, cell);
    if (letter === undefined) continue;
    const id = `${cell.row}/${cell.column}/${letter}`;
    if (!cells.has(id)) cells.set(id, { ...cell, id, letter, isQuick: false });
  }
  return [...cells.values()];
}

function letterFor({ name, letters }: Pick<Subject, "name" | "letters">, cell: Cell): Letter | undefined {
  if (/^(?:J06|J07|J36g)$|-seeded$/.test(cell.row)) return undefined;
  if (/^J1[67]$/.test(cell.row) && !NOTIFIED.has(name)) return undefined;
  if (letters.includes(cell.letter)) return cell.letter;
  if (cell.judged === "leases") return "m";
  // Without a token there is nothing to judge in the rows about tokens, nor to fence effects with.
  return undefined;
}
