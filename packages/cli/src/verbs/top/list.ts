/** The list of the busiest locks: which locks it contains, their order, and their columns. */
import { plain, shellWord } from "@holdfast/console/text";
import { formatMs } from "../../frame/durations.js";
import type { Column } from "../../frame/output.js";
import { stateText } from "../../listing/columns.js";
import { goneCount } from "../../listing/gone.js";
import { holderJson } from "../../listing/json.js";
import { whoIs } from "../../listing/people.js";
import type { HotLock, Snapshot } from "./sampler.js";

/** The orders that the key `s` cycles through. */
export const ORDERS = ["waiters", "longest wait", "held", "name"] as const;
/** One of the orders. */
export type Order = (typeof ORDERS)[number];

const RANK: Readonly<Record<Order, (hot: HotLock) => number>> = {
  waiters: ({ lock }) => -lock.waiterCount,
  "longest wait": ({ longestWaitMs = -1 }) => -longestWaitMs,
  held: ({ heldPercent = -1 }) => -heldPercent,
  name: () => 0,
};

/**
 * Returns the locks whose name, kind, label, holder or pause contains `filter`, sorted by `order`. Ties are broken by
 * the number of waiters, and then by name.
 */
export function hottest(locks: readonly HotLock[], order: Order, filter: string): HotLock[] {
  const text = filter.toLowerCase();
  const rank = RANK[order];
  return locks
    .filter((hot) => text === "" || textOf(hot).includes(text))
    .sort((a, b) => rank(a) - rank(b) || tie(a, b, order));
}

/**
 * Returns a note that the filter searched only some of the locks, and how to search all names. Undefined if there is no
 * filter, or if all locks were read.
 */
export function partialNote({ locks, isComplete }: Snapshot, filter: string): string | undefined {
  if (isComplete || filter === "") return undefined;
  const pattern = `*${filter.replace(/[\\*?[]/g, "\\$&")}*`;
  return `searched only ${locks.length} locks; all names, case-sensitive: holdfast ls ${plain(shellWord(pattern))}`;
}

function tie({ lock: a }: HotLock, { lock: b }: HotLock, order: Order): number {
  const byName = a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  return (order === "name" ? 0 : b.waiterCount - a.waiterCount) || byName;
}

function textOf({ lock }: HotLock): string {
  return [lock.name, lock.kind, lock.label, lock.pause?.by, ...lock.holders.map(whoIs)].join(" ").toLowerCase();
}

function holderText({ lock: { holders, pause } }: HotLock): string | undefined {
  const [holder] = holders;
  if (holder === undefined) return pause === undefined ? undefined : `paused by ${pause.by}`;
  return holders.length === 1 ? whoIs(holder) : `${holders.length} holders`;
}

/** The columns of the list. Values that come from the history are `-` if there is none. */
export const COLUMNS: readonly Column<HotLock>[] = [
  { heading: "NAME", cell: ({ lock }) => lock.name },
  { heading: "KIND", cell: ({ lock }) => lock.kind },
  {
    heading: "STATE",
    cell: ({ lock, atMs }) => stateText(lock, atMs),
    style: ({ lock }) => (goneCount(lock) > 0 ? "red" : lock.pause ? "yellow" : undefined),
  },
  { heading: "WAIT", cell: ({ lock }) => String(lock.waiterCount) },
  {
    heading: "LONGEST",
    cell: ({ longestWaitMs }) => (longestWaitMs === undefined ? undefined : formatMs(longestWaitMs)),
  },
  { heading: "HOLDER", cell: holderText },
  { heading: "HELD%", cell: ({ heldPercent }) => (heldPercent === undefined ? undefined : String(heldPercent)) },
  { heading: "GRANTS/S", cell: ({ past }) => past?.grantsPerSecond.toFixed(1) },
  { heading: "REFUSED", cell: ({ past }) => past && String(past.refused) },
  {
    heading: "LOST",
    cell: ({ past }) => past && String(past.lost),
    style: ({ past }) => (past?.lost ? "red" : undefined),
  },
];

/** One snapshot for JSON documents. */
export function snapshotJson({ atMs, locks, isComplete, unreachable }: Snapshot): object {
  return {
    atMs,
    isComplete,
    unreachable,
    locks: locks.map(({ lock, longestWaitMs, heldPercent, past }) => {
      const [holder] = lock.holders;
      return {
        name: lock.name,
        kind: lock.kind,
        state: lock.state,
        waiters: lock.waiterCount,
        longestWaitMs: longestWaitMs ?? null,
        holders: lock.holders.length,
        holder: holder === undefined ? null : holderJson(holder),
        heldPercent: heldPercent ?? null,
        grantsPerSecond: past?.grantsPerSecond ?? null,
        refused: past?.refused ?? null,
        lost: past?.lost ?? null,
      };
    }),
  };
}
