/**
 * Side by side: one run of each contestant in turn, then again, so that whatever else the machine does in
 * between disturbs all of them alike. Who begins changes from round to round.
 */
import type { Adapter } from "./adapters/adapter.js";
import type { Conditions, Figure, Measurement, Prepared } from "./measurements/measurement.js";
import { quantile } from "./statistics.js";

/** One measurement over all contestants. */
export interface Comparison {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly Row[];
}

/** One figure of one contestant. */
export interface Row extends Figure {
  readonly contestant: string;
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** Median of the ratios to the first contestant in the same round; absent for that one itself. */
  readonly ratio?: number;
}

/** Measures all contestants; the first one is what the others are compared with. */
export async function compare(
  measurement: Measurement,
  adapters: readonly Adapter[],
  conditions: Conditions & { readonly repetitions: number },
  onRun: (contestant: string, repetition: number) => void,
): Promise<Comparison> {
  const prepared: Prepared[] = [];
  const samples: (readonly number[])[][] = adapters.map(() => []);
  try {
    for (const adapter of adapters) {
      onRun(adapter.name, 0);
      prepared.push(await measurement.prepare(adapter, conditions));
    }
    for (let repetition = 0; repetition < conditions.repetitions; repetition += 1) {
      for (let turn = 0; turn < adapters.length; turn += 1) {
        const which = (repetition + turn) % adapters.length;
        const name = adapters[which]?.name ?? "";
        onRun(name, repetition + 1);
        try {
          samples[which]?.push((await prepared[which]?.run()) ?? []);
        } catch (cause) {
          throw new Error(`${measurement.name}, ${name}: ${cause instanceof Error ? cause.message : String(cause)}`, {
            cause,
          });
        }
      }
    }
  } finally {
    await Promise.all(prepared.map((contestant) => contestant.close()));
  }
  const rows = measurement.figures.flatMap((figure, column) =>
    adapters.map((adapter, which) => summary(figure, adapter.name, column, samples[which] ?? [], samples[0] ?? [])),
  );
  return { name: measurement.name, title: measurement.title(conditions), rows };
}

function summary(
  figure: Figure,
  contestant: string,
  column: number,
  own: readonly (readonly number[])[],
  yardstick: readonly (readonly number[])[],
): Row {
  const values = own.map((run) => run[column] ?? Number.NaN);
  const ratios = values.map((value, round) => value / (yardstick[round]?.[column] ?? Number.NaN));
  return {
    ...figure,
    contestant,
    median: quantile(values, 0.5),
    lowest: Math.min(...values),
    highest: Math.max(...values),
    ...(own === yardstick ? {} : { ratio: quantile(ratios, 0.5) }),
  };
}
