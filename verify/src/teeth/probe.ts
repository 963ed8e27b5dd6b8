/**
 * Runs in a workbench: the copied simulation or search, on the copied library.
 *
 * Takes its task as JSON in its only argument, and prints the result as JSON on its last line.
 */
import { argv, exit, stdout } from "node:process";
import { searchWith, searchWithout } from "../search/judge.js";
import { RULES } from "../search/rules.js";
import { choose } from "../simulation/choose.js";
import { runPlan } from "../simulation/run.js";
import { tamperingOf } from "./tampering.js";
import type { BySearch, BySimulation } from "./tooth.js";

/** A simulation task. */
export interface SimulationTask {
  readonly catcher: BySimulation;
  readonly tampering?: string | undefined;
  /** The last seed; the first is 1. */
  readonly seeds: number;
}

/** A world to search, with or without its rule. */
export interface SearchTask {
  readonly catcher: BySearch;
  readonly isControl: boolean;
}

/** The result. */
export interface Sighting {
  /** Empty if nothing was violated. */
  readonly property: string;
  readonly text: string;
  /** The seed, or the number of steps of the counterexample. */
  readonly count: number;
}

const NOTHING: Sighting = { property: "", text: "", count: 0 };
/** The maximum number of states for the search of a rule's world with the rule. */
const CONTROL_STATES = 100_000;

async function simulate({ catcher, tampering, seeds }: SimulationTask): Promise<Sighting> {
  const mistake = tampering === undefined ? {} : tamperingOf(tampering);
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violations } = await runPlan(choose(seed, catcher.kind, catcher.profile), mistake);
    const wanted = violations.find(({ property }) => catcher.finds.length === 0 || catcher.finds.includes(property));
    if (wanted !== undefined) return { property: wanted.property, text: wanted.text, count: seed };
  }
  return NOTHING;
}

async function search({ catcher, isControl }: SearchTask): Promise<Sighting> {
  const rule = RULES.find(({ id }) => id === catcher.rule);
  if (rule === undefined) throw new Error(`there is no rule ${catcher.rule}`);
  const { violation = "", trace } = isControl ? await searchWith(rule, CONTROL_STATES) : await searchWithout(rule);
  return { property: violation.split(":")[0] ?? "", text: violation, count: trace.length };
}

const task = JSON.parse(argv[2] ?? "") as SimulationTask | SearchTask;
const seen = "isControl" in task ? await search(task) : await simulate(task);
stdout.write(`\n${JSON.stringify(seen)}\n`);
// Exits explicitly, because a broken library may leave timers or sockets open.
exit(0);
