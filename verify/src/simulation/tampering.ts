/** What is wrong on purpose, to see whether the simulation finds out. */

import type { Script, Store } from "holdfast";
import type { Runtime } from "holdfast/simulation";

/** See the file header. Whatever is absent is as it is in production. */
export interface Tampering {
  /** True for guarded things that accept any token. */
  readonly unguarded?: boolean;
  /** The script to run in place of another. */
  readonly script?: (script: Script) => Script;
  /** The clocks and timers that a process gets in place of its own. */
  readonly runtime?: (runtime: Runtime) => Runtime;
  /** The way to the server that a process gets in place of its own. */
  readonly store?: (store: Store) => Store;
}
