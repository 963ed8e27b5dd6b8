/** Semaphores: `api/semaphores`. */
import type { Stamped } from "./document.js";
import type { Extent, HolderView, LockRow, PermitsView } from "./locks.js";

/** One semaphore. */
export interface SemaphoreView {
  readonly row: LockRow;
  readonly permits: PermitsView | null;
  /** At most 1000 holders. */
  readonly holders: readonly HolderView[];
}

/** The semaphores that the console follows, sorted by name. */
export interface SemaphoresState extends Extent {
  readonly semaphores: readonly SemaphoreView[];
}

/** Response of GET api/semaphores. */
export interface SemaphoresAnswer extends Stamped, SemaphoresState {}
