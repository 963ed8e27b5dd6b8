/**
 * The fault matrix as data: the fault, the servers, the kinds of lock, and the expected outcome.
 *
 * One line per row, with one word per column in the order of `COLUMNS`. A word consists of letters and a mark, and
 * defines a cell per letter: `0` kept, `!` broken, `~` reported, `R` refused; `·` means not applicable. A star
 * precedes a letter whose cell is in the quick run for each change.
 */
import type { Cell, Column, Expectation, Judged, Letter } from "./cell.js";
import { isQuorum } from "./columns.js";

/** A class of faults; the quick run includes a cell of each. */
export type FaultClass = "client" | "network" | "server" | "durability" | "clock" | "failover" | "operator";

/** One row of the matrix. */
export interface Row {
  readonly row: string;
  readonly title: string;
  readonly faultClass: FaultClass;
  readonly cells: readonly Cell[];
}

/** All columns, in display order. */
export const COLUMNS: readonly Column[] = ["1n", "1e", "1a", "T", "C", "Q3", "Q5"];

/** Columns with a single server, in which peers are tested. */
export const SINGLE: ReadonlySet<Column> = new Set<Column>(["1n", "1e", "1a"]);

const EXPECTATIONS: Readonly<Record<string, Expectation>> = {
  "0": "kept",
  "!": "broken",
  "~": "reported",
  R: "refused",
};

type Line = readonly [row: string, faultClass: FaultClass, title: string, words: string];

const LEASE_LINES: readonly Line[] = [
  ["J01", "client", "holder freezes for 0.5 to 3 leases", "m0 r0 w0 s0 f0 k0 t0"],
  ["J02", "client", "waiter freezes in the queue", "a0 l0 m0 r0 w0 t0 k0"],
  ["J03", "client", "holder killed", "s0 f0 a0 l0 m0 r0 k0"],
  ["J04", "client", "exit without release", "w0 s0 f0 t0 a0 m0 r0"],
  ["J05", "client", "event loop blocked longer than the lease", "l0 w0 s0 f0 k0 a0 t0"],
  ["J06", "client", "client's wall clock stepped", "l0 m0 r0 w0 s0 k0 a0"],
  ["J07", "client", "client's host suspended (simulation)", "f0 t0 l0 m0 r0 a0 k0"],
  ["J08", "client", "thousands of waiters", "t0 w0 s0 f0 l0 m0 r0"],
  ["J09", "network", "request lost", "r0 k0 t0 a0 m0 r0 m0"],
  ["J10", "network", "reply lost after the script ran", "*w0 s0 f0 l0 t0 k0 a0"],
  ["J11", "network", "connection stalled, nothing closed", "s0 f0 w0 k0 l0 t0 m0"],
  ["J12", "network", "request late or twice", "r0 a0 l0 w0 s0 m0 t0"],
  ["J13", "network", "delays up to more than a lease", "f0 r0 k0 s0 w0 a0 m0"],
  ["J14", "network", "client cut off in a namespace", "k0 l0 f0 r0 t0 a0 m0"],
  ["J15", "network", "command connection killed", "w0 s0 l0 f0 r0 t0 a0"],
  ["J16", "network", "subscriber killed", "k0 w0 s0 l0 f0 r0 t0"],
  ["J17", "network", "notifications dropped and forged", "m0 *k0 a0 w0 s0 r0 t0"],
  ["J18", "server", "server stands still", "t0 m0 r0 k0 a0 m0 r0"],
  ["J19", "server", "server slow", "s0 f0 w0 t0 l0 k0 a0"],
  ["J20", "server", "CLIENT PAUSE", "f0 l0 m0 s0 w0 t0 r0"],
  ["J21", "server", "SCRIPT FLUSH", "a0 k0 t0 m0 *f0 r0 k0"],
  ["J22", "server", "error replies", "l0 a0 w0 s0 k0 m0 r0"],
  ["J23", "durability", "clean SHUTDOWN and restart", "· t0 s0 a~ w~ k0 m0"],
  ["J24", "durability", "kill -9, restart on its files", "· m~ k0 · · t0 a0"],
  ["J25", "durability", "restart with empty memory", "r! · · w! s! *a! k!"],
  ["J25q", "durability", "the same, kept out longer than the longest lease", "f0 · · l~ m~ r0 t0"],
  ["J26", "durability", "restart on an old RDB file", "w! · · f! r! m! k!"],
  ["J27", "durability", "power loss: AOF cut to its last fsync", "· s! l0 · · t0 a0"],
  ["J28", "clock", "server's clock stepped a little, or back", "m0 r0 k0 t0 a0 k0 m0"],
  ["J29", "clock", "server's clock forward by more than a lease", "s! w! f! r! t! a! m!"],
  ["J30", "clock", "server's clock stops", "l0 f0 r0 k0 w0 t0 a0"],
  ["J31", "failover", "promotion with replication cut", "· · · *mrka! wsft! · ·"],
  ["J32", "failover", "Sentinel failover, healthy link", "· · · mtl~ · · ·"],
  ["J33", "failover", "old master alive after promotion", "· · · rwa! mfk! · ·"],
  ["J34", "failover", "coordinated Cluster failover", "· · · · rkl~ · ·"],
  ["J35", "failover", "slot migration", "· · · · stal0 · ·"],
  ["J36", "operator", "eviction, start-up check off", "k! t! m! s! r! a! r!"],
  ["J36g", "operator", "eviction policy, start-up check on", "mR mR mR mR mR mR mR"],
  ["J37", "operator", "FLUSHALL, foreign DEL", "t! a! w! f! m! k! r!"],
];

const TOKEN_LINES: readonly Line[] = [
  ["J38-plain", "operator", "fence counter deleted, plain counter", "t! t! t! t! t! t! t!"],
  ["J38-seeded", "operator", "fence counter deleted, seeded by the clock", "t0 t0 t0 t0 t0 t0 t0"],
  ["J25-plain", "durability", "token after memory loss or promotion, plain counter", "t! · · t! t! t! t!"],
  ["J25-seeded", "durability", "the same, seeded by one clock", "t0 · · t0 t0 t0 t0"],
  ["J33-ahead", "failover", "the same, old master alive and 10 s ahead", "· · · t! t! · ·"],
];

const EFFECT_LINES: readonly Line[] = [
  ["J01-unfenced", "client", "effects without tokens, pause longer than the lease", "m! m! m! m! m! m! m!"],
  ["J01-fenced", "client", "effects with tokens, pause longer than the lease", "t0 t0 *t0 t0 t0 t0 t0"],
  ["J31-fenced", "failover", "effects with tokens, seeded by one clock, old master dead", "· · · t0 t0 · ·"],
];

const PAIR_LINES: readonly Line[] = [["pair", "network", "two kept faults at once", "a0 r0 k0 m0 f0 t0 k0"]];

/**
 * Additional cells for kinds that the reference matrix does not have: a killed client, a lost reply, closed
 * subscriber connections, lost scripts. Their rows are those of the matrix.
 */
const BESIDE_LINES: readonly Line[] = [
  ["J03", "client", "holder killed", "eb0 ec0 eb0"],
  ["J10", "network", "reply lost after apply", "ec0 eb0 ec0"],
  ["J16", "network", "subscribers killed", "eb0 ec0 eb0"],
  ["J21", "server", "SCRIPT FLUSH", "ec0 eb0 ec0"],
];

/**
 * The rows about memory loss and promotion again, with the `failoverGrace` in their names, and the outcomes that
 * docs/safety.md then guarantees. Keep both in sync.
 */
const GRACE_LINES: readonly Line[] = [
  ["J24-grace", "durability", "kill -9, restart on its files, grace on", "· m0 · · · · ·"],
  ["J25-grace", "durability", "restart with empty memory, grace on: no trace is left", "r! · · w! s! · ·"],
  ["J25-strict", "durability", "restart with empty memory, grace strict", "r0 · · w0 · a0 k0"],
  ["J26-grace", "durability", "restart on an old RDB file, grace on", "w0 · · f0 r0 m0 k0"],
  ["J27-grace", "durability", "power loss, grace on", "· s0 · · · · ·"],
  ["J31-grace", "failover", "promotion with replication cut, grace on", "· · · *mrka0 wsft0 · ·"],
  ["J32-grace", "failover", "Sentinel failover, healthy link, grace on", "· · · mt0 · · ·"],
  ["J33-grace", "failover", "old master alive after promotion, grace on", "· · · rwa! mfk~ · ·"],
  ["J34-grace", "failover", "coordinated Cluster failover, grace on", "· · · · rk~ · ·"],
];

/** Rows for quorums only: the rules of Redlock, and objections to it that are faults, by their numbers. */
const QUORUM_LINES: readonly Line[] = [
  ["R3", "server", "as many servers hang as a majority can miss", "· · · · · t0 m0"],
  ["R11", "durability", "as many servers are killed as a majority can miss", "· · · · · m0 a0"],
  ["R13", "server", "a majority is killed, hangs or is cut off, again and again", "· · · · · a0 t0"],
  ["R8", "network", "twenty processes contend for one lock", "· · · · · m0 m0"],
  ["K3", "clock", "the clock of one voter jumps forward, two others cannot be reached", "· · · · · · m!"],
  ["K4", "durability", "one voter forgets and is back at once", "· · · · · t! t!"],
  ["K5", "clock", "one voter forgets, is kept out, and its clock jumps over that", "· · · · · m! m!"],
  ["K8", "durability", "one voter forgets a long lease, others that know it are cut off", "· · · · · m0 m0"],
];

/**
 * Rows whose clients hold via `run`, which does not await the release; in one row they also retain mutexes. And a row of
 * plain releases.
 */
const BACKGROUND_LINES: readonly Line[] = [
  ["J03-background", "client", "random kills on one hot name, releases in the background", "mf0 · s0 m0 m0 · ·"],
  ["J10-background", "network", "reply lost after the script ran, releases in the background", "mw0 · · · · · ·"],
  ["J24-background", "durability", "kill -9, restart on its files, releases in the background", "· · m0 · · · ·"],
  ["J03-retained", "client", "random kills on two hot names, which processes retain", "m0 · m0 · m0 · ·"],
  ["J03-native", "client", "random kills on many names, most of which nobody waits for", "m0 · · m0 · · ·"],
];

/**
 * Directed scenarios with a measured bound each, see `liveness/`: how much delay a frozen process, a dead connection
 * or a vanished host causes.
 */
const LIVENESS_LINES: readonly Line[] = [
  ["L01", "client", "ten waiters in five processes are frozen ahead of a live one", "ms0 · · m0 m0 · ·"],
  ["L02", "network", "a host vanishes that holds the lock and has five claims in the queue", "*ms0 · · m0 m0 · ·"],
  ["L03", "network", "a subscriber connection is half-open: silent", "ms0 · · m0 m0 · ·"],
  ["L04", "network", "a subscriber connection is half-open: closed on the server's side only", "ms0 · · m0 m0 · ·"],
  ["L05", "network", "a subscription succeeds and delivers nothing", "ms0 · · m0 m0 · ·"],
  ["L06", "network", "all connections of a process are black-holed", "ms0 · · m0 m0 · ·"],
  ["L07", "client", "5 000 callers of one process time out together", "*ms0 · · · · · ·"],
];

/** The reference matrix, row by row. */
export const MATRIX: readonly Row[] = [
  ...LEASE_LINES.map((line) => rowOf(line, "leases")),
  ...TOKEN_LINES.map((line) => rowOf(line, "tokens")),
  ...EFFECT_LINES.map((line) => rowOf(line, "effects")),
  ...PAIR_LINES.map((line) => rowOf(line, "leases")),
];

/** Rows that the reference matrix does not have. */
export const OWN: readonly Row[] = [...GRACE_LINES, ...QUORUM_LINES, ...BACKGROUND_LINES].map((line) =>
  rowOf(line, "leases"),
);

/** Rows about liveness, each with its own scenario and judge. */
export const LIVENESS: readonly Row[] = LIVENESS_LINES.map((line) => rowOf(line, "leases"));

/** The cells of the liveness rows. */
export const LIVENESS_CELLS: readonly Cell[] = LIVENESS.flatMap(({ cells }) => cells);

/** Whether a cell belongs to a liveness row. */
export function isLiveness({ row }: Pick<Cell, "row">): boolean {
  return LIVENESS.some((line) => line.row === row);
}

/** All rows, those of the reference matrix first. */
export const ROWS: readonly Row[] = [...MATRIX, ...OWN, ...LIVENESS];

/** Cells in addition to those of the reference matrix. */
export const BESIDE: readonly Cell[] = [
  ...BESIDE_LINES.flatMap((line) => rowOf(line, "leases").cells),
  ...OWN.flatMap(({ cells }) => cells),
];

/** All cells of the reference matrix. */
export const CELLS: readonly Cell[] = MATRIX.flatMap(({ cells }) => cells);

/** The cells with a single server, which peers can run. */
export const SINGLE_CELLS: readonly Cell[] = CELLS.filter(({ column }) => SINGLE.has(column));

/** @throws RangeError  unknown row */
export function rowNamed(name: string): Row {
  const found = ROWS.find(({ row }) => row === name);
  if (found === undefined) throw new RangeError(`no row ${name}; there are ${ROWS.map(({ row }) => row).join(", ")}`);
  return found;
}

/**
 * The kind that is run in a column. A quorum has only one kind, which also stands for reentrant mutexes and
 * multi-locks of the reference.
 */
function playedAs(letter: Letter, column: Column): Letter {
  return isQuorum(column) && "rk".includes(letter) ? "m" : letter;
}

function rowOf([row, faultClass, title, words]: Line, judged: Judged): Row {
  const cells = words.split(" ").flatMap((word, index) => {
    const column = COLUMNS[index];
    const [, letters = "", mark = ""] = /^((?:\*?[mrwsfktalebc])+)([0!~R])$/.exec(word) ?? [];
    const expectation = EXPECTATIONS[mark];
    if (column === undefined || (word !== "·" && expectation === undefined))
      throw new SyntaxError(`The row ${row} of the matrix has no meaning at: ${word}`);
    if (expectation === undefined) return [];
    return Array.from(letters.matchAll(/(\*?)(\w)/g), ([, star, letter]) => ({
      id: `${row}/${column}/${letter}`,
      row,
      column,
      // The regular expression above allows only these letters.
      letter: playedAs(letter as Letter, column),
      expectation,
      judged,
      isQuick: star === "*",
    }));
  });
  return { row, title, faultClass, cells };
}
