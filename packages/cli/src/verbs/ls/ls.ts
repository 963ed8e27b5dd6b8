/** `holdfast ls`: lists the locks, their holders and their waiters. */

import { plain, unreadableSentence } from "@holdfast/console/text";
import { LOCK_KINDS, type LockKind, survey, surveyAll } from "holdfast/admin";
import { parseDuration } from "../../frame/durations.js";
import { EXIT, usageError } from "../../frame/exit-codes.js";
import { jsonLine, notify, paintFor, table } from "../../frame/output.js";
import { durationOf, isGiven, textOf, textsOf, wholeOf, wordOf } from "../../frame/values.js";
import type { Call, Connection, Verb } from "../../frame/verb.js";
import { wrapped } from "../../frame/wrapped.js";
import { COLUMN_NAMES, columnsOf, type LockColumn, type Row, USUAL_COLUMNS } from "../../listing/columns.js";
import { goneCount, isLate } from "../../listing/gone.js";
import { lockJson } from "../../listing/json.js";
import { reportMissing } from "../../listing/missing.js";
import { onlyNative } from "../../listing/native.js";
import { topologySentence } from "../../listing/sentences.js";
import { serverNowMs } from "../../listing/server-time.js";
import { fitted } from "../../live/clip.js";
import { USUAL_WATCH, type View, watch } from "../../live/watch.js";
import { inOrder, SORTS, type Sort } from "./order.js";

/** Maximum of `--limit`: a page is printed only once all of its locks are read. */
const MOST_LOCKS = 10_000;

const HELP = `
Lists locks of every kind that are held, waited for or paused. It reads them
in pages (SCAN), never all in one request.

  PATTERN                 only matching names: order:* (quote it). * ? [a-z]
      --kind K            ${wrapped("only this kind, repeatable:", LOCK_KINDS)}
      --holder TEXT       only if the host, app, owner or label of a holder
                          contains TEXT
      --waiting           only with waiters
      --held-over D       only if held for longer than D
      --gone              only if the client of a holder is gone and its
                          lease still runs
      --late              only if a renewal is late: less than half of a
                          lease is left
      --deadlocks         instead: clients that wait for each other's locks,
                          and what to release
      --all               also free locks that still have a record
      --sort name|since|left|waiters
                          the order (name). since: longest hold first, left:
                          first to end, waiters: most first. Reads all locks,
                          then prints the first N; without it, one page by
                          name
  -o, --columns COLS      ${wrapped("separated by commas, of:", COLUMN_NAMES)}
      --no-headings       no heading
      --raw               tabs between columns, names unescaped, times in ms:
                          for pipes, refused on a terminal
      --limit N           at most N locks (200), up to ${MOST_LOCKS}. Without
                          --sort a page may have a few more, and the output
                          ends with the cursor of the next page
      --cursor C          continue where a page ended
      --watch [D]         repeat every D (${USUAL_WATCH}) until interrupted; with --json
                          one line each

Exit code 0, even if there are no locks. If reading fails after some locks
were found, ls prints these, the cursor to continue, and the error (with
--sort or --watch, only the error).
--json: {"v":1,"locks":[…],"nextCursor":null,"unreachable":0,"more":0}.`;

/** The verb `ls`. */
export const ls: Verb = {
  name: "ls",
  usage: "holdfast ls [PATTERN] [flags]",
  help: HELP,
  options: {
    kind: { type: "string", multiple: true },
    holder: { type: "string" },
    waiting: { type: "boolean" },
    "held-over": { type: "string" },
    gone: { type: "boolean" },
    late: { type: "boolean" },
    deadlocks: { type: "boolean" },
    all: { type: "boolean" },
    sort: { type: "string" },
    columns: { type: "string", short: "o" },
    "no-headings": { type: "boolean" },
    raw: { type: "boolean" },
    limit: { type: "string" },
    cursor: { type: "string" },
    watch: { type: "string", bare: USUAL_WATCH },
  },
  async run(call) {
    const wish = wishOf(call);
    const connection = await call.connect();
    try {
      if (isGiven(call.values, "deadlocks")) {
        const { listDeadlocks } = await import("./deadlocks.js");
        return await listDeadlocks(call, connection);
      }
      let failure: unknown;
      const read = async (): Promise<View> => {
        const page = await pageOf(connection, wish);
        ({ failure } = page);
        // A ping after a failed read would only delay the list.
        const pinged = failure === undefined ? connection : { nodes: () => [] };
        await reportMissing(call, pinged, { ...page, narrower: "; narrow it with PATTERN" });
        return viewOf(call, wish, page);
      };
      if (wish.everyMs !== undefined) return await watch(call, wish.everyMs, read);
      const { lines, json } = await read();
      call.streams.stdout.write(call.common.isJson ? jsonLine(json) : lines.map((line) => `${line}\n`).join(""));
      if (failure !== undefined) throw failure;
      return EXIT.done;
    } finally {
      await connection.close();
    }
  },
};

interface Wish {
  readonly pattern: string | undefined;
  readonly kinds: readonly LockKind[];
  readonly holder: string | undefined;
  readonly isWaiting: boolean;
  readonly heldOverMs: number | undefined;
  readonly isGone: boolean;
  readonly isLate: boolean;
  readonly includeFree: boolean;
  readonly sort: Sort;
  /** Whether an order was requested. If so, all locks are read before the first ones are shown. */
  readonly isSorted: boolean;
  readonly columns: readonly LockColumn[];
  readonly hasHeadings: boolean;
  readonly isRaw: boolean;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly everyMs: number | undefined;
}

function wishOf({ values, positionals, common, streams }: Call): Wish {
  onlyNative("ls", common);
  const [pattern, extra] = positionals;
  if (extra !== undefined) throw usageError(`ls takes one PATTERN, quoted; got "${pattern}" and "${extra}"`);
  const isRaw = isGiven(values, "raw");
  if (isRaw && streams.stdout.isTTY === true) {
    throw usageError("--raw is for pipes, because a name may contain terminal control sequences");
  }
  const every = textOf(values, "watch");
  const cursor = textOf(values, "cursor");
  if (every !== undefined && cursor !== undefined)
    throw usageError("--watch shows only the first page, so it cannot be combined with --cursor");
  const sort = wordOf(values, "sort", SORTS);
  if (sort !== undefined && cursor !== undefined)
    throw usageError("--sort reads all locks, and --cursor continues one page: use only one, or a larger --limit");
  return {
    pattern,
    kinds: textsOf(values, "kind").map(kindOf),
    holder: textOf(values, "holder"),
    isWaiting: isGiven(values, "waiting"),
    heldOverMs: durationOf(values, "held-over"),
    isGone: isGiven(values, "gone"),
    isLate: isGiven(values, "late"),
    includeFree: isGiven(values, "all"),
    sort: sort ?? "name",
    isSorted: sort !== undefined,
    columns: columnsOf(textOf(values, "columns") ?? USUAL_COLUMNS),
    hasHeadings: !isGiven(values, "no-headings") && !isRaw,
    isRaw,
    limit: wholeOf(values, "limit", { min: 1, max: MOST_LOCKS }) ?? 200,
    cursor,
    everyMs: every === undefined ? undefined : parseDuration("--watch", every, { minMs: 100 }),
  };
}

function kindOf(text: string): LockKind {
  const kind = LOCK_KINDS.find((one) => one === text);
  if (kind === undefined) throw usageError(`--kind must be one of ${LOCK_KINDS.join(", ")}; got "${text}"`);
  return kind;
}

interface Page {
  readonly rows: readonly Row[];
  readonly nextCursor: string | undefined;
  readonly unreachable: number;
  readonly isComplete?: boolean;
  /** The number of locks that were read but are not shown because of `--limit`. */
  readonly more: number;
  /** The error that ended the list before `nextCursor`. The locks that were read before it are shown. */
  readonly failure?: unknown;
}

/**
 * Reads page after page until enough locks are found, because filtering could otherwise leave a page empty.
 *
 * @throws the error of a read, if no lock has been found before it, and with `--watch`
 */
async function pageOf(connection: Connection, wish: Wish): Promise<Page> {
  if (wish.isSorted) return await firstOfAll(connection, wish);
  const { pattern, kinds, holder, includeFree, limit } = wish;
  const rows: Row[] = [];
  let cursor = wish.cursor;
  let unreachable = 0;
  do {
    try {
      const page = await survey(connection.holdfast, {
        includeFree,
        limit: limit - rows.length,
        ...(pattern === undefined ? {} : { pattern }),
        ...(kinds.length === 0 ? {} : { kinds }),
        ...(holder === undefined ? {} : { holder }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      const atMs = await serverNowMs(connection);
      rows.push(...page.locks.map((lock) => ({ lock, atMs })).filter((row) => isWanted(row, wish)));
      cursor = page.nextCursor;
      unreachable = page.unreachable;
    } catch (error) {
      if (error instanceof TypeError && error.message.startsWith("cursor ")) throw usageError(`--${error.message}`);
      if (rows.length === 0 || wish.everyMs !== undefined) throw error;
      return { rows: inOrder(rows, wish.sort), nextCursor: cursor, unreachable, more: 0, failure: error };
    }
  } while (cursor !== undefined && rows.length < limit);
  return { rows: inOrder(rows, wish.sort), nextCursor: cursor, unreachable, more: 0 };
}

/** Reads all locks, because the lock that comes first in the requested order may be the last one read. */
async function firstOfAll(connection: Connection, wish: Wish): Promise<Page> {
  const { pattern, kinds, holder, includeFree, limit } = wish;
  const { locks, unreachable, isComplete } = await surveyAll(connection.holdfast, {
    includeFree,
    ...(pattern === undefined ? {} : { pattern }),
    ...(kinds.length === 0 ? {} : { kinds }),
    ...(holder === undefined ? {} : { holder }),
  });
  const atMs = await serverNowMs(connection);
  const rows = locks.map((lock) => ({ lock, atMs })).filter((row) => isWanted(row, wish));
  const shown = inOrder(rows, wish.sort).slice(0, limit);
  return { rows: shown, nextCursor: undefined, unreachable, isComplete, more: rows.length - shown.length };
}

function isWanted({ lock, atMs }: Row, { isWaiting, heldOverMs, isGone, isLate: onlyLate }: Wish): boolean {
  if (isWaiting && lock.waiterCount === 0) return false;
  if (isGone && goneCount(lock) === 0) return false;
  if (onlyLate && !lock.holders.some(isLate)) return false;
  if (heldOverMs === undefined) return true;
  return lock.holders.some(({ sinceAtMs }) => sinceAtMs !== undefined && atMs - sinceAtMs > heldOverMs);
}

function viewOf({ streams, common }: Call, wish: Wish, { rows, nextCursor, unreachable, more }: Page): View {
  for (const { lock } of rows) {
    const topology = topologySentence(lock);
    if (topology !== undefined) notify(streams, common, `${plain(lock.name)} (${lock.kind}) ${topology}`);
    const unreadable = unreadableSentence(lock);
    if (unreadable !== undefined) notify(streams, common, `${plain(lock.name)} (${lock.kind}) ${unreadable}`);
  }
  const json = { locks: rows.map(({ lock }) => lockJson(lock)), nextCursor: nextCursor ?? null, unreachable, more };
  if (common.isJson) return { lines: [], json };
  if (nextCursor !== undefined && wish.everyMs === undefined) {
    notify(streams, common, `for the next page, add --cursor ${nextCursor}`);
  }
  if (more > 0 && wish.everyMs === undefined) {
    const [which, them] = more === 1 ? ["1 more lock matches", "it"] : [`${more} more locks match`, "them"];
    const cure = wish.limit < MOST_LOCKS ? "raise --limit" : "use a narrower PATTERN, or omit --sort for pages,";
    notify(streams, common, `${which}; ${cure} to show ${them}`);
  }
  const { columns, hasHeadings, isRaw } = wish;
  if (isRaw) return { lines: rows.map((row) => columns.map(({ raw }) => raw(row) ?? "").join("\t")), json };
  const paint = paintFor(streams.stdout, common.color);
  // Shorten cells only on a terminal: a program that reads a pipe needs the full values.
  const width = streams.stdout.isTTY === true ? streams.stdout.columns : undefined;
  const text = table(fitted(columns, width), rows, { hasHeadings, paint });
  return { lines: text === "" ? [] : text.trimEnd().split("\n"), json };
}
