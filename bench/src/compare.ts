/**
 * Runs each entry once per round, so that other load on the machine affects all of them alike. The order changes from
 * round to round. A library that fails is left out and reported.
 */
import type { Adapter } from "./adapters/adapter.js";
import { Cores } from "./cores.js";
import type { Conditions, Entry, Prepared, Section, Target } from "./measurements/entry.js";
import type { Measurement } from "./measurements/measurement.js";
import { type Outcome, Results } from "./results.js";

/** One measurement over all entries. */
export interface Comparison {
  readonly name: string;
  readonly title: string;
  readonly seconds: number;
  readonly figures: Measurement["figures"];
  readonly outcomes: readonly Outcome[];
  readonly targets: readonly Target[];
}

/** Measures all entries. `onRun` is called before each run with its number, and with 0 before the setup. */
export async function compare(
  measurement: Measurement,
  adapters: readonly Adapter[],
  conditions: Conditions,
  onRun: (entry: string, repetition: number) => void,
): Promise<Comparison> {
  const entries = measurement.entries(adapters);
  const prepared = new Map<string, Prepared>();
  const samples = new Map<string, (readonly number[])[]>();
  const sections = new Map<string, readonly Section[]>();
  const troubles = new Map<string, string>();
  const guarded = async (entry: Entry, step: () => Promise<void>): Promise<void> => {
    if (troubles.has(entry.name)) return;
    try {
      await step();
    } catch (cause) {
      troubles.set(entry.name, firstLine(cause));
      samples.delete(entry.name);
    }
  };
  let cores: Cores | undefined;
  try {
    for (const entry of entries) {
      const { prepare } = entry;
      if (typeof prepare !== "function") {
        troubles.set(entry.name, prepare.absent);
        continue;
      }
      onRun(entry.name, 0);
      await guarded(entry, async () => {
        prepared.set(entry.name, await prepare(conditions));
      });
    }
    if (measurement.hasOwnCores === true) {
      const callers = [...prepared.values()].flatMap(({ pids = [] }) => pids);
      cores = await Cores.reserve(
        [conditions.server, ...conditions.servers].map(({ pid }) => pid),
        callers,
      );
    }
    const rounds = conditions.repetitions * (measurement.rounds ?? 1);
    for (let repetition = 0; repetition < rounds; repetition += 1) {
      for (let turn = 0; turn < entries.length; turn += 1) {
        const entry = entries[(repetition + turn) % entries.length];
        const contestant = entry === undefined ? undefined : prepared.get(entry.name);
        if (entry === undefined || contestant === undefined) continue;
        onRun(entry.name, repetition + 1);
        await guarded(entry, async () => {
          const run = await contestant.run();
          samples.set(entry.name, [...(samples.get(entry.name) ?? []), run.values]);
          if (run.sections !== undefined) sections.set(entry.name, run.sections);
        });
      }
    }
  } finally {
    await cores?.release();
    await Promise.all([...prepared.values()].map((contestant) => contestant.close()));
  }
  const results = new Results(measurement.figures, entries, samples, troubles, sections);
  return {
    name: measurement.name,
    title: measurement.title(conditions),
    seconds: conditions.seconds,
    figures: measurement.figures,
    outcomes: results.outcomes,
    targets: measurement.targets(results, conditions).map((target) => withFailures(target, entries, troubles)),
  };
}

/** An undecided target counts as missed if it is undecided because one of our entries failed. */
function withFailures(target: Target, entries: readonly Entry[], troubles: ReadonlyMap<string, string>): Target {
  if (target.reached !== null) return target;
  const failed = entries.find(
    ({ name, role, prepare }) => role === "own" && typeof prepare === "function" && troubles.has(name),
  );
  if (failed === undefined) return target;
  return { ...target, measured: `${failed.name} failed: ${troubles.get(failed.name)}`, reached: false };
}

function firstLine(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return (text.split("\n")[0] ?? "").replace(/^Error: /, "");
}
