/** The interface of a measurement. To add one, add a file to this folder and a line to all.ts. */
import type { Adapter } from "../adapters/adapter.js";
import type { Results } from "../results.js";
import type { Conditions, Entry, Figure, Target } from "./entry.js";

/** A measurement. */
export interface Measurement {
  /** The name for `--only`. */
  readonly name: string;
  /** A one-line description, with the sizes of this run. */
  title(conditions: Conditions): string;
  /** Length of one run, unless the command line says otherwise. */
  readonly seconds: number;
  /** Rounds per repetition. Short runs need several, so that a hiccup of the machine counts less. 1 if absent. */
  readonly rounds?: number;
  /** The number of servers that its entries need in addition to the shared one. 0 if absent. */
  readonly servers?: number;
  /** Whether servers and callers run on different cores (see cores.ts), for measurements of short round trips. */
  readonly hasOwnCores?: boolean;
  readonly figures: readonly Figure[];
  /** The entries, including those that cannot be measured, with the reason. */
  entries(adapters: readonly Adapter[]): readonly Entry[];
  /** The targets and their results. */
  targets(results: Results, conditions: Conditions): readonly Target[];
}
