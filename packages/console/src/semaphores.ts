/** The semaphores page. */
import type { LockEntry } from "holdfast/admin";
import type { SemaphoreView } from "./api.js";
import type { KeptRow, Snapshot } from "./snapshot.js";
import { holdersOf, idOf, permitsOf, rowOf, type ViewContext } from "./views.js";

/** The semaphores among all locks, sorted by name so that the list stays stable. */
export function semaphoreViews(
  entries: readonly LockEntry[],
  rows: ReadonlyMap<string, KeptRow> | null,
  context: ViewContext,
  before: Snapshot,
): readonly SemaphoreView[] {
  const old = new Map(before.semaphores?.semaphores.map((view) => [view.row.id, view]));
  return entries
    .filter(({ kind }) => kind === "semaphore")
    .map((entry) => {
      const id = idOf(entry);
      const last = old.get(id);
      const row = rows?.get(id)?.row ?? rowOf(entry, context, [], last?.row);
      return { row, permits: permitsOf(entry), holders: holdersOf(entry.holders, context, last?.holders) };
    })
    .sort((left, right) => (left.row.name < right.row.name ? -1 : 1));
}
