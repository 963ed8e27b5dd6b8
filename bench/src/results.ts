/** What the runs of one measurement came to, and the questions that targets ask of it. */
import type { Entry, Figure, Section, Target } from "./measurements/entry.js";
import { quantile } from "./statistics.js";

/** One figure of one library over all repetitions. */
export interface Summary {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** Median of the ratios to the yardstick in the same round; absent where there is no yardstick. */
  readonly ratio?: number;
}

/** What came of one entry. */
export interface Outcome {
  readonly name: string;
  readonly role: Entry["role"];
  /** One per figure; empty where it was not measured. */
  readonly summaries: readonly Summary[];
  /** Why it took no part, or what it broke. */
  readonly trouble?: string;
  readonly sections?: readonly Section[];
}

/** All that was measured, by name of entry and figure. */
export class Results {
  readonly outcomes: readonly Outcome[];
  readonly #figures: readonly Figure[];
  readonly #samples: ReadonlyMap<string, readonly (readonly number[])[]>;

  /** @param samples  for each entry that was measured the values of its runs, in the same order for all */
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

  /** Median of a figure. NaN if it was not measured. */
  median(name: string, figure: string): number {
    return quantile(this.#values(name, figure), 0.5);
  }

  /** Median over the rounds of how one is to the other; NaN where either was not measured. */
  ratio(name: string, yardstick: string, figure: string): number {
    const others = this.#values(yardstick, figure);
    return quantile(
      this.#values(name, figure).map((value, round) => value / (others[round] ?? Number.NaN)),
      0.5,
    );
  }

  /** The peer whose median of a figure is the best, among those that `isIn` admits. */
  bestPeer(figure: string, isIn: (name: string) => boolean = () => true): string | undefined {
    const better = this.#figures.find(({ name }) => name === figure)?.better;
    const peers = this.outcomes
      .filter(({ role, name, trouble }) => role === "peer" && trouble === undefined && isIn(name))
      .filter(({ name }) => !Number.isNaN(this.median(name, figure)))
      .toSorted((a, b) => this.median(a.name, figure) - this.median(b.name, figure));
    return (better === "more" ? peers.at(-1) : peers[0])?.name;
  }

  /** What an entry broke, or why it took no part. */
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

/** A target for a number that should be at most, or at least, so much. */
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
