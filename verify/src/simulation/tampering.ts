/** Deliberate mistakes, to check that the simulation finds them. */

import type { Script, Store } from "holdfast";
import type { Runtime } from "holdfast/simulation";

/** The mistakes of a run. Absent parts are those of production. */
export interface Tampering {
  /** True if resources accept any token. */
  readonly unguarded?: boolean;
  /** Replaces scripts. */
  readonly script?: (script: Script) => Script;
  /** Replaces the clocks and timers of a process. */
  readonly runtime?: (runtime: Runtime) => Runtime;
  /** Replaces the connection of a process to the server. */
  readonly store?: (store: Store) => Store;
}
