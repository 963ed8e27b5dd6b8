/** The elections page, and how often leaders have changed recently. */
import type { LockEntry } from "holdfast/admin";
import type { ElectionView } from "./api.js";
import type { KeptRow, Snapshot } from "./snapshot.js";
import { idOf, leaderOf, queueOf, rowOf, type ViewContext } from "./views.js";
import type { Waits } from "./waits.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** More leader changes per hour than restarts and deployments normally cause. */
const FLAPPING = 6;
const MOST_ELECTIONS = 1_000;
const MOST_TERMS = 200;

/**
 * The terms of each election that this process has seen. A term is identified by its start time, so no term is counted
 * twice.
 */
export class Terms {
  readonly #seen = new Map<string, { readonly firstMs: number; readonly terms: number[] }>();

  /** Records that a term is current. */
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

  /** Server time at which this process first saw a term of the election; null if it has seen none. */
  watchedSince(id: string): number | null {
    return this.#seen.get(id)?.firstMs ?? null;
  }

  /** The number of leader changes seen since that instant. The first term seen does not count as a change. */
  changesSince(id: string, sinceAtMs: number): number {
    const terms = this.#seen.get(id)?.terms ?? [];
    return terms.slice(1).filter((term) => term / 1_000 >= sinceAtMs).length;
  }
}

/** The elections among all locks, sorted by name. */
export function electionViews(
  entries: readonly LockEntry[],
  rows: ReadonlyMap<string, KeptRow> | null,
  { context, before, terms, waits }: { context: ViewContext; before: Snapshot; terms: Terms; waits: Waits },
): readonly ElectionView[] {
  const old = new Map(before.elections?.elections.map((view) => [view.row.id, view]));
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
