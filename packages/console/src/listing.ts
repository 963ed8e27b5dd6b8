/**
 * Reads the locks for a new viewer page by page, so that the first locks appear early.
 *
 * Each page is as long as all earlier pages together, so the states sent for one list have, in total, at most twice as
 * many rows as the complete list.
 */
import type { Holdfast } from "holdfast";
import { type LockEntry, survey } from "holdfast/admin";
import { idOf } from "./views.js";

const FIRST_PAGE = 1_000;

/** The locks read so far, and where the next page begins. */
export interface Listing {
  readonly locks: readonly LockEntry[];
  /** Undefined: all locks were read. */
  readonly nextCursor: string | undefined;
  /** The number of servers that did not reply. */
  readonly unreachable: number;
}

/**
 * Reads the next page.
 *
 * @param before  the result so far; null for the first page
 * @throws errors from the library
 */
export async function nextPage(holdfast: Holdfast, before: Listing | null, most: number): Promise<Listing> {
  const locks = new Map(before?.locks.map((lock) => [idOf(lock), lock]));
  const limit = Math.max(1, Math.min(Math.max(FIRST_PAGE, locks.size), most - locks.size));
  const page = await survey(holdfast, { limit, cursor: before?.nextCursor });
  for (const lock of page.locks) locks.set(idOf(lock), together(lock, locks.get(idOf(lock))));
  return { locks: [...locks.values()], nextCursor: page.nextCursor, unreachable: page.unreachable };
}

/** Merges the entries of one mutex, which can be on several pages, each with some of its conditions. */
function together(lock: LockEntry, before: LockEntry | undefined): LockEntry {
  if (before === undefined || before.conditions.length === 0) return lock;
  const conditions = new Map([...before.conditions, ...lock.conditions].map((one) => [one.name, one]));
  return { ...lock, state: lock.state === "free" ? "awaited" : lock.state, conditions: [...conditions.values()] };
}
