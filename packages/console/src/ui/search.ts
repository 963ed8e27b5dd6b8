/**
 * Searches for locks that match a filter if there are more locks than the stream follows. The server reads them page by
 * page, and the list shows what was found so far. The functions need no browser, so tests can run them.
 */
import type { Extent, LockRow, LocksAnswer } from "../api.js";
import { whole } from "./format.js";

/** What a search has found. */
export interface Search {
  readonly rows: readonly LockRow[];
  /** The number of locks read; null for visitors who may not see all locks. */
  readonly lockCount: number | null;
  /** Whether locks are still being read, so that more may match. */
  readonly isReading: boolean;
  /** Whether the search ended early because enough locks match. */
  readonly isCut: boolean;
  /** The number of servers that did not reply. Their locks are missing. */
  readonly unreachable: number;
}

/** Reads one page. */
export type ReadPage = (
  cursor: string,
) => Promise<Pick<LocksAnswer, "rows" | "lockCount" | "nextCursor" | "unreachable">>;

/** The search before its first page. */
export const UNREAD: Search = { rows: [], lockCount: 0, isReading: true, isCut: false, unreachable: 0 };

/** The number of matching locks at which a search ends. */
export const ENOUGH = 1_000;

/** Reads page after page until all locks are read or enough match. Yields after each page. */
export async function* search(readPage: ReadPage): AsyncGenerator<Search, void, void> {
  const found = new Map<string, LockRow>();
  let lockCount: number | null = 0;
  let cursor: string | null = "";
  while (cursor !== null && found.size < ENOUGH) {
    const page = await readPage(cursor);
    for (const row of page.rows) found.set(row.id, row);
    lockCount = page.lockCount === null || lockCount === null ? null : lockCount + page.lockCount;
    cursor = page.nextCursor;
    const isReading = cursor !== null && found.size < ENOUGH;
    const isCut = cursor !== null && !isReading;
    yield { rows: [...found.values()], lockCount, isReading, isCut, unreachable: page.unreachable };
  }
}

/** The sentence about servers that did not reply; undefined if all did. */
export function unreachableText({ unreachable }: Pick<Extent, "unreachable">): string | undefined {
  if (unreachable === 0) return undefined;
  return unreachable === 1
    ? "1 server did not reply: its locks are missing."
    : `${whole(unreachable)} servers did not reply: their locks are missing.`;
}

/**
 * The text that says how many locks match. While locks are being read, "none" would not be true yet, so it then says
 * only how many were read.
 */
export function matchText(
  shown: number,
  { lockCount, isReading, isCut }: Omit<Search, "rows" | "unreachable">,
): string {
  const more = isCut ? "+" : "";
  const n = `${whole(shown)}${more}`;
  if (isReading) {
    const read = lockCount === null || lockCount === 0 ? "" : `${whole(lockCount)} locks read so far`;
    if (shown === 0) return read === "" ? "Reading …" : read;
    return read === "" ? `${n} found so far` : `${n} found, ${read}`;
  }
  if (lockCount === null) return `${n} ${shown === 1 && !isCut ? "lock matches" : "locks match"}`;
  return `${n} of ${whole(Math.max(shown, lockCount))}${more} locks`;
}
