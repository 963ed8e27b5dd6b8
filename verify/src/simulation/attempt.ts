/** A call of `acquire` as the judge sees it. */

import type { Draft } from "./draft.js";
import type { Session } from "./plan.js";
import type { SimulatedProcess } from "./process.js";

/** A call that may end in a grant. */
export interface Attempt {
  readonly id: number;
  readonly session: Session;
  readonly process: SimulatedProcess;
  readonly lockName: string;
  readonly callMs: number;
  returnMs: number;
  /** Its record; undefined for calls other than acquire. */
  readonly operation: Draft | undefined;
}
