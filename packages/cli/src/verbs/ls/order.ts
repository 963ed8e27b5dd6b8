/** Sorts lists of locks. Unknown values come last, and locks with equal values are sorted by name. */
import { leftMs, type Row, sinceAtMs } from "../../listing/columns.js";

/** The orders that `--sort` accepts. */
export const SORTS = ["name", "since", "left", "waiters"] as const;
/** One of the orders. */
export type Sort = (typeof SORTS)[number];

const RANK: Readonly<Record<Sort, (row: Row) => number>> = {
  name: () => 0,
  since: (row) => sinceAtMs(row) ?? Number.POSITIVE_INFINITY,
  left: (row) => leftMs(row) ?? Number.POSITIVE_INFINITY,
  waiters: ({ lock }) => -lock.waiterCount,
};

/** Returns the rows in that order: longest hold first, earliest end first, most waiters first, or by name. */
export function inOrder(rows: readonly Row[], sort: Sort): Row[] {
  const rank = RANK[sort];
  const byName = (a: Row, b: Row): number => compare(a.lock.name, b.lock.name) || compare(a.lock.kind, b.lock.kind);
  return rows
    .map((row) => ({ row, rank: rank(row) }))
    .sort((a, b) => compare(a.rank, b.rank) || byName(a.row, b.row))
    .map(({ row }) => row);
}

/** Compares by code units, so that the order is the same on every host. Treats two infinite values as equal. */
function compare<Value extends string | number>(a: Value, b: Value): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
