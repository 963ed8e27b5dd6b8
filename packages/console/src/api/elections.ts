/** Elections: `api/elections`. */
import type { Stamped } from "./document.js";
import type { LeaderView, LockRow, WaiterView } from "./locks.js";

/** One election. */
export interface ElectionView {
  readonly row: LockRow;
  readonly leader: LeaderView | null;
  readonly candidates: readonly WaiterView[];
  readonly candidateCount: number;
  /** Changes of the leader in the last day, as far as this process saw them: see `watchedSinceAtMs`. */
  readonly transitionsLastDay: number | null;
  /** Since when this process sees them; null: it has seen no leader yet, so that it knows of no changes. */
  readonly watchedSinceAtMs: number | null;
  /** More than 6 changes in the last hour that were seen. */
  readonly isFlapping: boolean;
}

/** GET api/elections */
export interface ElectionsAnswer extends Stamped {
  readonly elections: readonly ElectionView[];
}
