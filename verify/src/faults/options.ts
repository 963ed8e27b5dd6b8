/** The options of the fault-run command and the cells that they select. */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { Cell } from "./cell.js";
import { subjectOfBuild } from "./liveness/build.js";
import { CLIENT_LIBRARIES, type ClientLibrary } from "./liveness/messages.js";
import { BESIDE, CELLS, isLiveness, LIVENESS_CELLS, ROWS } from "./matrix.js";
import { STAND_INS } from "./subjects/peers.js";
import { SUBJECT_NAMES } from "./subjects/table.js";

/** The help text. */
export const USAGE: string = `npm run verify:faults -- [options]
  --cells J10/1n/w,J17/1e/k   these cells
  --rows J10,J17              cells of these rows
  --columns 1n,1a             cells of these columns
  --quick                     the quick run for a change: the marked cells, and at least one for each class of fault
  --subject holdfast,redlock  the libraries to test; peers are shown side by side, and never fail the run
  --client ioredis            the client library of the liveness cells (L…): ioredis, node-redis or glide
  --build protocol-0          runs liveness cells with a stored build; present,protocol-0 runs both
  --peers                     every peer in the cells it can run, and Holdfast in the same cells
  --seconds N                 how long faults strike each cell (10)
  --minutes N                 repeats the cells for this time, each round with a new seed
  --seed N                    the seed of the first round (1); the same number replays a cell
  --jobs N                    cells at the same time (two per core, because they mostly wait)
  --report DIR                the directory for index.html, verdicts.json and histories
  --write-docs                writes the results of --peers to verify/docs/peers-under-faults.md
  --from DIR,DIR              with --write-docs: uses these reports, and runs nothing
  --list                      prints the cells and exits`;

/** The parsed command line. */
export interface Options {
  readonly cells: readonly Cell[];
  readonly subjects: readonly string[];
  /** The Redis client library for the liveness cells. */
  readonly library: ClientLibrary;
  /** Whether Holdfast runs only the cells that its peers also run. */
  readonly isSideBySide: boolean;
  readonly isToDocument: boolean;
  /** Directories of existing reports. */
  readonly from: readonly string[];
  readonly lastsMs: number;
  /** Undefined: run one round. */
  readonly budgetMs: number | undefined;
  readonly seed: number;
  readonly jobs: number;
  readonly report: string | undefined;
  readonly isList: boolean;
  readonly isHelp: boolean;
}

/**
 * Reads the arguments of the command.
 *
 * @throws TypeError, RangeError  an option or a name is unknown, or the options select no cell
 */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      cells: { type: "string" },
      rows: { type: "string" },
      columns: { type: "string" },
      quick: { type: "boolean", default: false },
      subject: { type: "string", default: "holdfast" },
      peers: { type: "boolean", default: false },
      client: { type: "string", default: "ioredis" },
      build: { type: "string", default: "present" },
      "write-docs": { type: "boolean", default: false },
      from: { type: "string", default: "" },
      seconds: { type: "string", default: "10" },
      minutes: { type: "string" },
      seed: { type: "string", default: "1" },
      jobs: { type: "string", default: String(2 * availableParallelism()) },
      report: { type: "string" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const builds = wordsOf(values.build).map(subjectOfBuild);
  if (values["write-docs"] && !values.peers) throw new RangeError("--write-docs needs --peers");
  return {
    cells: forBuilds(selected(values), builds),
    subjects: (values.peers ? SUBJECT_NAMES : wordsOf(values.subject)).flatMap((name) =>
      name === "holdfast" ? builds : [name],
    ),
    library: libraryOf(values.client),
    isSideBySide: values.peers,
    isToDocument: values["write-docs"],
    from: wordsOf(values.from),
    lastsMs: positive("--seconds", values.seconds) * 1_000,
    budgetMs: values.minutes === undefined ? undefined : positive("--minutes", values.minutes) * 60_000,
    seed: Math.trunc(positive("--seed", values.seed)),
    jobs: Math.max(1, Math.trunc(positive("--jobs", values.jobs))),
    report: values.report,
    isList: values.list,
    isHelp: values.help,
  };
}

interface Selection {
  readonly cells?: string | undefined;
  readonly rows?: string | undefined;
  readonly columns?: string | undefined;
  readonly quick: boolean;
  readonly peers: boolean;
}

function selected({ cells, rows, columns, quick, peers }: Selection): Cell[] {
  // The document about peers counts violations. Liveness cells measure durations, so with peers they run only if named.
  const every = [...CELLS, ...BESIDE, ...(peers && cells === undefined && rows === undefined ? [] : LIVENESS_CELLS)];
  const all = [...every, ...STAND_INS];
  const ids = known("cell", cells, new Set(all.map(({ id }) => id)));
  const rowNames = known("row", rows, new Set(ROWS.map(({ row }) => row)));
  const columnNames = known("column", columns, new Set(every.map(({ column }) => column)));
  const quickIds = quick ? new Set(quickCells().map(({ id }) => id)) : undefined;
  const meant = (ids === undefined ? every : all).filter(
    ({ id, row, column }) =>
      (ids === undefined || ids.has(id)) &&
      (rowNames === undefined || rowNames.has(row)) &&
      (columnNames === undefined || columnNames.has(column)) &&
      (quickIds === undefined || quickIds.has(id)),
  );
  if (meant.length === 0) throw new RangeError("the options select no cell");
  return meant;
}

/**
 * The cells to run for a change: those marked in the matrix, and at least one promised cell and one control for each
 * class of fault. Added cells prefer kinds (letters) that no chosen cell covers yet.
 */
export function quickCells(): Cell[] {
  const all = [...CELLS, ...BESIDE];
  const chosen = all.filter(({ isQuick }) => isQuick);
  for (const faultClass of new Set(ROWS.map((row) => row.faultClass))) {
    const rows = new Set(ROWS.filter((row) => row.faultClass === faultClass).map(({ row }) => row));
    for (const expectation of ["kept", "broken"]) {
      if (chosen.some((cell) => rows.has(cell.row) && cell.expectation === expectation)) continue;
      const candidates = all.filter((cell) => rows.has(cell.row) && cell.expectation === expectation);
      const fresh = candidates.find(({ letter }) => chosen.every((cell) => cell.letter !== letter));
      const next = fresh ?? candidates[0];
      if (next !== undefined) chosen.push(next);
    }
  }
  return chosen;
}

/** Stored builds support only the liveness cells, so all other cells are dropped if one is among `builds`. */
function forBuilds(cells: Cell[], builds: readonly string[]): Cell[] {
  if (builds.every((build) => build === "holdfast")) return cells;
  const playable = cells.filter(isLiveness);
  if (playable.length === 0) throw new RangeError("--build is for liveness cells, whose rows begin with L");
  return playable;
}

function libraryOf(name: string): ClientLibrary {
  const library = CLIENT_LIBRARIES.find((known) => known === name);
  if (library === undefined) throw new RangeError(`no client ${name}; there are ${CLIENT_LIBRARIES.join(", ")}`);
  return library;
}

function wordsOf(text: string): string[] {
  return text.split(",").filter((word) => word !== "");
}

function known(what: string, text: string | undefined, all: ReadonlySet<string>): ReadonlySet<string> | undefined {
  if (text === undefined) return undefined;
  const words = wordsOf(text);
  const unknown = words.filter((word) => !all.has(word));
  if (unknown.length > 0) throw new RangeError(`no ${what} ${unknown.join(", ")}; see --list`);
  return new Set(words);
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new RangeError(`${name} is a number above 0, not ${text}`);
  return value;
}
