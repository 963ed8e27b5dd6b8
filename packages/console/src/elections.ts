/** The page of elections, and how often leaders have changed lately. */
import type { LockEntry } from "holdfast/admin";
import type { ElectionView } from "./api.js";
import type { KeptRow, Snapshot } from "./snapshot.js";
import { idOf, leaderOf, queueOf, rowOf, type ViewContext } from "./views.js";
import type { Waits } from "./waits.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** More changes in an hour than restarts and deployments make. */
const FLAPPING = 6;
const MOST_ELECTIONS = 1_000;
const MOST_TERMS = 200;

/** Terms that this process has seen, for each election. A term is the time at which it began, so none is counted twice. */
export class Terms {
  readonly #seen = new Map<string, { readonly firstMs: number; readonly terms: number[] }>();

  /** That term is on. */
  see(id: string, term: number, nowMs: number): void {
    let seen = this.#seen.get(id);
    if (seen === undefined) {
      if (this.#seen.size >= MOST_ELECTIONS) return;
      seen = { firstMs: nowMs, terms: [] };
      this.#seen.set(id, seen);
    }
    if (seen.terms.at(-1) === term) return;
    seen.terms.push(term);
    if (seen.terms.length > MOST_TERMS) seen.terms.shift();
  }

  /** Since when its terms are seen, by the server's clock; null if none was seen yet. */
  watchedSince(id: string): number | null {
    return this.#seen.get(id)?.firstMs ?? null;
  }

  /** Changes of the leader in the last so many ms, as far as they were seen; the first term seen is no change. */
  changesSince(id: string, sinceAtMs: number): number {
    const terms = this.#seen.get(id)?.terms ?? [];
    return terms.slice(1).filter((term) => term / 1_000 >= sinceAtMs).length;
  }
}

/** Of all locks, those that are elections; by name. */
export function electionViews(
  entries: readonly LockEntry[],
  rows: ReadonlyMap<string, KeptRow> | null,
  { context, before, terms, waits }: { context: ViewContext; before: Snapshot; terms: Terms; waits: Waits },
): readonly ElectionView[] {
  const old = new Map(before.elections?.map((view) => [view.row.id, view]));
  const { nowMs } = context;
  return entries
    .filter(({ kind }) => kind === "election")
    .map((entry) => {
      const id = idOf(entry);
      const last = old.get(id);
      const row = rows?.get(id)?.row ?? rowOf(entry, context, [], last?.row);
      if (entry.leader !== undefined) terms.see(id, entry.leader.term, nowMs);
      const owners = entry.waiters.map(({ owner }) => owner);
      return {
        row,
        leader: leaderOf(entry, context, last?.leader),
        candidates: queueOf(entry.waiters, context, waits.see(id, owners, nowMs)),
        candidateCount: entry.waiterCount,
        transitionsLastDay: terms.changesSince(id, nowMs - DAY_MS),
        watchedSinceAtMs: terms.watchedSince(id),
        isFlapping: terms.changesSince(id, nowMs - HOUR_MS) > FLAPPING,
      };
    })
    .sort((left, right) => (left.row.name < right.row.name ? -1 : 1));
}
