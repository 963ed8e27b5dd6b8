/** Elections: `api/elections`. */
import type { Stamped } from "./document.js";
import type { LeaderView, LockRow, WaiterView } from "./locks.js";

/** One election. */
export interface ElectionView {
  readonly row: LockRow;
  readonly leader: LeaderView | null;
  readonly candidates: readonly WaiterView[];
  readonly candidateCount: number;
  /** Changes of the leader in the last day, as far as history or this process saw them; null: not known. */
  readonly transitionsLastDay: number | null;
  /** More than 6 changes in the last hour that were seen. */
  readonly isFlapping: boolean;
}

/** GET api/elections */
export interface ElectionsAnswer extends Stamped {
  readonly elections: readonly ElectionView[];
}
