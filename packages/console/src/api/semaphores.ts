/** Semaphores: `api/semaphores`. */
import type { Stamped } from "./document.js";
import type { HolderView, LockRow, PermitsView } from "./locks.js";

/** One semaphore. */
export interface SemaphoreView {
  readonly row: LockRow;
  readonly permits: PermitsView | null;
  /** All, at most 1000. */
  readonly holders: readonly HolderView[];
}

/** GET api/semaphores */
export interface SemaphoresAnswer extends Stamped {
  readonly semaphores: readonly SemaphoreView[];
}
