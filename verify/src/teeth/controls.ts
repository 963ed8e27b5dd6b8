/**
 * Runs the same catchers on the unchanged library: a catcher that fails there catches nothing.
 *
 * Simulations play every seed that a tooth needed, searches keep the rule, tests run unchanged.
 */
import { probe, runTests } from "./catch.js";
import type { BySearch, BySimulation, ByTest, Catcher } from "./tooth.js";
import type { Workbench } from "./workbench.js";

/** A control, with a description of its failure; empty if it passes. */
export interface Control {
  readonly what: string;
  run(workbench: Workbench): Promise<string>;
}

/** A catcher, with the seed at which it caught the mistake, if it has one. */
export interface Bite {
  readonly catcher: Catcher;
  readonly count: number;
}

/** The controls of all catchers, without duplicates. */
export function controlsOf(bites: readonly Bite[]): Control[] {
  return [...simulations(bites), ...searches(bites), ...tests(bites)];
}

function simulations(bites: readonly Bite[]): Control[] {
  const furthest = new Map<string, { catcher: BySimulation; seeds: number }>();
  for (const { catcher, count } of bites) {
    if (catcher.by !== "simulation") continue;
    const key = `${catcher.kind}, faults "${catcher.profile}"`;
    const seeds = Math.max(count, furthest.get(key)?.seeds ?? 0);
    furthest.set(key, { catcher: { ...catcher, finds: [] }, seeds });
  }
  return [...furthest].map(([key, { catcher, seeds }]) => ({
    what: `simulation of ${key}, seeds 1 to ${seeds}`,
    async run(workbench) {
      const seen = await probe(workbench, { catcher, seeds });
      if (typeof seen === "string") return seen;
      return seen.property === "" ? "" : `seed ${seen.count}: ${seen.property}: ${seen.text}`;
    },
  }));
}

function searches(bites: readonly Bite[]): Control[] {
  const rules = new Map<string, BySearch>();
  for (const { catcher } of bites) if (catcher.by === "search") rules.set(catcher.rule, catcher);
  return [...rules.values()].map((catcher) => ({
    what: `search with ${catcher.rule}`,
    async run(workbench) {
      const seen = await probe(workbench, { catcher, isControl: true });
      return typeof seen === "string" ? seen : seen.text;
    },
  }));
}

function tests(bites: readonly Bite[]): Control[] {
  const catchers = bites.flatMap(({ catcher }) => (catcher.by === "test" ? [catcher] : []));
  const files = byFile(catchers);
  return [...files].map(([file, ofFile]) => ({
    what: `${new Set(ofFile.map(({ test }) => test)).size} tests of ${file}`,
    async run(workbench) {
      const ends = await runTests(workbench, ofFile);
      if (typeof ends === "string") return ends;
      const bad = ofFile.find(
        ({ test }) => !ends.some(({ fullName, status }) => fullName.endsWith(test) && status === "passed"),
      );
      return bad === undefined ? "" : `"${bad.test}" does not pass`;
    },
  }));
}

function byFile(catchers: readonly ByTest[]): Map<string, ByTest[]> {
  const files = new Map<string, ByTest[]>();
  for (const catcher of catchers) files.set(catcher.file, [...(files.get(catcher.file) ?? []), catcher]);
  return files;
}
