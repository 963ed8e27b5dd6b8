/** Elections: `api/elections`. */
import type { Stamped } from "./document.js";
import type { Extent, LeaderView, LockRow, WaiterView } from "./locks.js";

/** One election. */
export interface ElectionView {
  readonly row: LockRow;
  readonly leader: LeaderView | null;
  readonly candidates: readonly WaiterView[];
  readonly candidateCount: number;
  /** Leader changes in the last day that this process has seen; see `watchedSinceAtMs`. */
  readonly transitionsLastDay: number | null;
  /** When this process started to record leader changes; null if it has not seen a leader yet. */
  readonly watchedSinceAtMs: number | null;
  /** More than 6 changes seen in the last hour. */
  readonly isFlapping: boolean;
}

/** The elections that the console follows, sorted by name. */
export interface ElectionsState extends Extent {
  readonly elections: readonly ElectionView[];
}

/** Response of GET api/elections. */
export interface ElectionsAnswer extends Stamped, ElectionsState {}
