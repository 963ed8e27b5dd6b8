/** The columns of `ls`: what each shows to people, and what it prints for programs with `--raw`. */
import { formatMs } from "../frame/durations.js";
import { usageError } from "../frame/exit-codes.js";
import type { Column, Style } from "../frame/output.js";
import type { ShownLock } from "./found.js";
import { goneCount, goneText } from "./gone.js";
import { whoIs } from "./people.js";

/** A lock, and when it was read: server time in ms since 1970. */
export interface Row {
  readonly lock: ShownLock;
  readonly atMs: number;
}

/** One column of `ls`. */
export interface LockColumn extends Column<Row> {
  /**
   * The value for programs: durations in ms, times in ms since 1970, lists separated by commas. Undefined is printed as
   * an empty field.
   */
  readonly raw: (row: Row) => string | undefined;
}

/** The state in a few words: `2 readers`, `3 of 5`, `held, gone for 8m`. A paused lock may still have holders. */
export function stateText(lock: ShownLock, atMs: number): string {
  const gone = goneText(lock, atMs);
  return gone === undefined ? plainState(lock) : `${plainState(lock)}, ${gone}`;
}

function plainState(lock: ShownLock): string {
  const { state, permits, holders, count, barrier, waiterCount } = lock;
  if (state === "paused" && holders.length > 0) return `paused, ${plainState({ ...lock, state: "held" })}`;
  if (state === "held" && permits !== undefined) return `${permits.used} of ${permits.limit ?? "?"}`;
  if (state === "held" && lock.mode === "shared")
    return holders.length === 1 ? "1 reader" : `${holders.length} readers`;
  if (state === "counting" && count !== undefined) return `${count.left} of ${count.initial} left`;
  if (state === "gathering") return `${waiterCount} of ${barrier?.parties ?? "?"}`;
  return state;
}

/** The holder if there is exactly one, or the number of holders. Without holders, the person who paused the lock. */
function holderText({ pause, holders }: ShownLock): string | undefined {
  const [holder] = holders;
  if (holder === undefined) return pause?.by;
  return holders.length === 1 ? whoIs(holder) : `${holders.length} holders`;
}

/** Reads a value of the only holder. Undefined with several holders, because their values differ; `show` lists them. */
function ofHolder<Value>(
  { lock }: Row,
  read: (holder: ShownLock["holders"][number]) => Value | undefined,
): Value | undefined {
  const [holder] = lock.holders;
  return holder === undefined || lock.holders.length > 1 ? undefined : read(holder);
}

function ofEach({ lock }: Row, read: (holder: ShownLock["holders"][number]) => string | undefined): string | undefined {
  const texts = new Set(lock.holders.map(read).filter((text) => text !== undefined && text !== ""));
  return texts.size === 0 ? undefined : [...texts].join(",");
}

/**
 * When the only holder acquired the lock or, without holders, when it was paused. All columns of a row describe the
 * same holder or pause.
 */
export function sinceAtMs(row: Row): number | undefined {
  const { pause, holders } = row.lock;
  return holders.length === 0 ? pause?.sinceAtMs : ofHolder(row, (holder) => holder.sinceAtMs);
}

/** The time left until the lease or the pause ends. Infinity for a foreign key without an expiry. */
export function leftMs(row: Row): number | undefined {
  const { pause, holders } = row.lock;
  if (holders.length > 0) return ofHolder(row, (holder) => holder.leaseLeftMs);
  return pause?.untilAtMs === undefined ? undefined : Math.max(0, pause.untilAtMs - row.atMs);
}

/** When the client of a holder went away. With several such clients, the earliest time. */
function goneSinceAtMs({ lock }: Row): number | undefined {
  const all = lock.holders.flatMap((holder) => holder.goneSinceAtMs ?? []);
  return all.length === 0 ? undefined : Math.min(...all);
}

/** The remaining time of a lease, as text for people. */
export function leftText(left: number | undefined): string | undefined {
  if (left === undefined) return undefined;
  return left === Number.POSITIVE_INFINITY ? "no end" : formatMs(left);
}

function whole(value: number | undefined): string | undefined {
  return value === undefined || !Number.isFinite(value) ? undefined : String(Math.round(value));
}

function stateStyle({ lock }: Row): Style | undefined {
  const { state } = lock;
  if (goneCount(lock) > 0) return "red";
  if (state === "paused" || state === "broken") return "yellow";
  return state === "free" ? "dim" : undefined;
}

/** A column with the same text for people and programs. */
function plainColumn(heading: string, cell: (row: Row) => string | undefined): LockColumn {
  return { heading, cell, raw: cell };
}

const COLUMNS: Readonly<Record<string, LockColumn>> = {
  name: plainColumn("NAME", ({ lock }) => lock.name),
  kind: plainColumn("KIND", ({ lock }) => lock.kind),
  mode: plainColumn("MODE", ({ lock }) => lock.mode),
  state: {
    heading: "STATE",
    cell: ({ lock, atMs }) => stateText(lock, atMs),
    raw: ({ lock }) => lock.state,
    style: stateStyle,
  },
  holder: plainColumn("HOLDER", ({ lock }) => holderText(lock)),
  host: plainColumn("HOST", (row) => ofEach(row, ({ host }) => host)),
  pid: plainColumn("PID", (row) => ofEach(row, ({ pid }) => whole(pid))),
  app: plainColumn("APP", (row) => ofEach(row, ({ clientName }) => clientName)),
  owner: plainColumn("OWNER", (row) => ofEach(row, ({ owner }) => owner)),
  since: {
    heading: "FOR",
    cell(row) {
      const since = sinceAtMs(row);
      return since === undefined ? undefined : formatMs(row.atMs - since);
    },
    raw: (row) => whole(sinceAtMs(row)),
  },
  left: { heading: "LEFT", cell: (row) => leftText(leftMs(row)), raw: (row) => whole(leftMs(row)) },
  gone: {
    heading: "GONE",
    cell: (row) => {
      const since = goneSinceAtMs(row);
      return since === undefined ? undefined : formatMs(row.atMs - since);
    },
    raw: (row) => whole(goneSinceAtMs(row)),
  },
  token: plainColumn("TOKEN", (row) => whole(ofHolder(row, ({ token }) => token))),
  waiters: plainColumn("WAIT", ({ lock }) => String(lock.waiterCount)),
  permits: {
    heading: "PERMITS",
    cell: ({ lock: { permits } }) => permits && `${permits.used}/${permits.limit ?? "?"}`,
    raw: ({ lock: { permits } }) => permits && `${permits.used}/${permits.limit ?? ""}`,
  },
  label: plainColumn("LABEL", ({ lock }) => (lock.holders[0] === undefined ? lock.label : lock.holders[0].label)),
  term: plainColumn("TERM", ({ lock }) => whole(lock.leader?.term)),
};

/** The names that `-o` accepts. */
export const COLUMN_NAMES: readonly string[] = Object.keys(COLUMNS);

/** The columns that are shown without `-o`. */
export const USUAL_COLUMNS = "name,kind,state,holder,since,left,token,waiters,label";

/** Returns the columns of a list such as `name,host,since`. @throws CliError 64  unknown column */
export function columnsOf(list: string): LockColumn[] {
  return list.split(/[,\s]+/).map((name) => {
    const column = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : undefined;
    if (column === undefined) throw usageError(`-o takes the columns ${COLUMN_NAMES.join(" ")}; got "${name}"`);
    return column;
  });
}
