/** Semaphores: `api/semaphores`. */
import type { Stamped } from "./document.js";
import type { HolderView, LockRow, PermitsView } from "./locks.js";

/** One semaphore. */
export interface SemaphoreView {
  readonly row: LockRow;
  readonly permits: PermitsView | null;
  /** At most 1000 holders. */
  readonly holders: readonly HolderView[];
}

/** Response of GET api/semaphores. */
export interface SemaphoresAnswer extends Stamped {
  readonly semaphores: readonly SemaphoreView[];
}
