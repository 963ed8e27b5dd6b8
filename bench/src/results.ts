/** The results of one measurement, with the queries that targets need. */
import type { Entry, Figure, Section, Target } from "./measurements/entry.js";
import { quantile } from "./statistics.js";

/** One figure of one library over all repetitions. */
export interface Summary {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** Median of the ratios to the yardstick in the same round. Absent if there is no yardstick. */
  readonly ratio?: number;
}

/** The result of one entry. */
export interface Outcome {
  readonly name: string;
  readonly role: Entry["role"];
  /** One per figure. Empty if the entry was not measured. */
  readonly summaries: readonly Summary[];
  /** Why it was not measured, or how it failed. */
  readonly trouble?: string;
  readonly sections?: readonly Section[];
}

/** All measured values, by the names of entry and figure. */
export class Results {
  readonly outcomes: readonly Outcome[];
  readonly #figures: readonly Figure[];
  readonly #samples: ReadonlyMap<string, readonly (readonly number[])[]>;

  /** @param samples  for each measured entry, the values of its runs; all entries have their runs in the same order */
  constructor(
    figures: readonly Figure[],
    entries: readonly Entry[],
    samples: ReadonlyMap<string, readonly (readonly number[])[]>,
    troubles: ReadonlyMap<string, string>,
    sections: ReadonlyMap<string, readonly Section[]>,
  ) {
    this.#figures = figures;
    this.#samples = samples;
    this.outcomes = entries.map((entry) => {
      const trouble = troubles.get(entry.name);
      const drawn = sections.get(entry.name);
      return {
        name: entry.name,
        role: entry.role,
        summaries: trouble === undefined ? figures.map((figure) => this.#summary(entry, figure)) : [],
        ...(trouble === undefined ? {} : { trouble }),
        ...(drawn === undefined || trouble !== undefined ? {} : { sections: drawn }),
      };
    });
  }

  /** Median of a figure, or NaN if it was not measured. */
  median(name: string, figure: string): number {
    return quantile(this.#values(name, figure), 0.5);
  }

  /** Median, over all rounds, of the ratio between two entries. NaN if either was not measured. */
  ratio(name: string, yardstick: string, figure: string): number {
    const others = this.#values(yardstick, figure);
    return quantile(
      this.#values(name, figure).map((value, round) => value / (others[round] ?? Number.NaN)),
      0.5,
    );
  }

  /** The peer with the best median of a figure, among those for which `isIn` is true. */
  bestPeer(figure: string, isIn: (name: string) => boolean = () => true): string | undefined {
    const better = this.#figures.find(({ name }) => name === figure)?.better;
    const peers = this.outcomes
      .filter(({ role, name, trouble }) => role === "peer" && trouble === undefined && isIn(name))
      .filter(({ name }) => !Number.isNaN(this.median(name, figure)))
      .toSorted((a, b) => this.median(a.name, figure) - this.median(b.name, figure));
    return (better === "more" ? peers.at(-1) : peers[0])?.name;
  }

  /** How an entry failed, or why it was not measured. */
  trouble(name: string): string | undefined {
    return this.outcomes.find((outcome) => outcome.name === name)?.trouble;
  }

  #values(name: string, figure: string): number[] {
    const column = this.#figures.findIndex((one) => one.name === figure);
    return (this.#samples.get(name) ?? []).map((run) => run[column] ?? Number.NaN);
  }

  #summary(entry: Entry, figure: Figure): Summary {
    const values = this.#values(entry.name, figure.name).filter((value) => !Number.isNaN(value));
    const { yardstick } = entry;
    const ratio = yardstick === undefined ? Number.NaN : this.ratio(entry.name, yardstick, figure.name);
    return {
      median: quantile(values, 0.5),
      lowest: Math.min(...values),
      highest: Math.max(...values),
      ...(Number.isNaN(ratio) ? {} : { ratio }),
    };
  }
}

/** A target with an upper or a lower bound. */
export function target(
  what: string,
  value: number,
  bound: { readonly atMost: number } | { readonly atLeast: number },
  unit: string,
  digits = 2,
): Target {
  const shown = (number: number): string =>
    `${number.toLocaleString("en-US", { maximumFractionDigits: digits })}${unit === "" ? "" : ` ${unit}`}`;
  if (Number.isNaN(value)) return { what, bound: boundOf(bound, shown), measured: "not measured", reached: null };
  return {
    what,
    bound: boundOf(bound, shown),
    measured: shown(value),
    reached: "atMost" in bound ? value <= bound.atMost : value >= bound.atLeast,
  };
}

function boundOf(
  bound: { readonly atMost: number } | { readonly atLeast: number },
  shown: (number: number) => string,
): string {
  return "atMost" in bound ? `≤ ${shown(bound.atMost)}` : `≥ ${shown(bound.atLeast)}`;
}
