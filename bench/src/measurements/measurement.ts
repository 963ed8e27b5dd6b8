/** The one form of all measurements. A new one is one file in this folder and one line in all.ts. */
import type { Adapter } from "../adapters/adapter.js";
import type { Results } from "../results.js";
import type { Conditions, Entry, Figure, Target } from "./entry.js";

/** What is measured, and what it tells. */
export interface Measurement {
  /** The word after `--only`. */
  readonly name: string;
  /** One line for people, with the sizes of this run. */
  title(conditions: Conditions): string;
  /** Length of one run, unless the command line says otherwise. */
  readonly seconds: number;
  /** Rounds for each repetition, where runs are short: the more rounds, the less any hiccup of the machine counts. 1 if absent. */
  readonly rounds?: number;
  /** How many servers it needs besides the one that all measurements share, for all its entries together. 0 if absent. */
  readonly servers?: number;
  /** Whether servers and callers have cores of their own, see cores.ts: where short round trips are measured. */
  readonly hasOwnCores?: boolean;
  readonly figures: readonly Figure[];
  /** Who takes part, and who cannot, with the reason. */
  entries(adapters: readonly Adapter[]): readonly Entry[];
  /** What was to be reached, and whether it was. */
  targets(results: Results, conditions: Conditions): readonly Target[];
}
