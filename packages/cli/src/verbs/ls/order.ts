/** The order of a list. What is not known comes last, and equals by name. */
import { leftMs, type Row, sinceAtMs } from "../../listing/columns.js";

/** What `--sort` takes. */
export const SORTS = ["name", "since", "left", "waiters"] as const;
/** One of them. */
export type Sort = (typeof SORTS)[number];

const RANK: Readonly<Record<Sort, (row: Row) => number>> = {
  name: () => 0,
  since: (row) => sinceAtMs(row) ?? Number.POSITIVE_INFINITY,
  left: (row) => leftMs(row) ?? Number.POSITIVE_INFINITY,
  waiters: ({ lock }) => -lock.waiterCount,
};

/** The rows in that order: who has held longest, what ends first, most waiters, or by name. */
export function inOrder(rows: readonly Row[], sort: Sort): Row[] {
  const rank = RANK[sort];
  const byName = (a: Row, b: Row): number => compare(a.lock.name, b.lock.name) || compare(a.lock.kind, b.lock.kind);
  return rows
    .map((row) => ({ row, rank: rank(row) }))
    .sort((a, b) => compare(a.rank, b.rank) || byName(a.row, b.row))
    .map(({ row }) => row);
}

/** By code units, so that it is the same on every host. Infinity is equal to itself. */
function compare<Value extends string | number>(a: Value, b: Value): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
