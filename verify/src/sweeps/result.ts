import type { HistoryRecord } from "../history/records.js";

/** A property of the reference that a sweep decides. */
export type Property =
  | "S2"
  | "S3"
  | "S4"
  | "F1"
  | "F2"
  | "F3"
  | "F4"
  | "F5"
  | "E1"
  | "X1"
  | "X2"
  | "X3"
  | "L1"
  | "L4"
  | "L6";

/** Something that may not happen, and the records that show it. */
export interface Violation {
  readonly message: string;
  /** The lock, or for the guarded thing its name. */
  readonly name: string;
  readonly records: readonly HistoryRecord[];
}

/** Something that was left out of the judgement, and why. */
export interface Exclusion {
  readonly reason: string;
  readonly record: HistoryRecord;
}

/** What a sweep found in one history. */
export interface SweepResult {
  readonly property: Property;
  /** `empty`: the history has nothing in it to which the property applies, so it shows nothing. */
  readonly verdict: "ok" | "violation" | "empty";
  readonly violations: readonly Violation[];
  readonly exclusions: readonly Exclusion[];
  /** `checked` is how many cases were decided; the others are named by the sweep. */
  readonly figures: Readonly<Record<string, number>>;
}

/** Collects what a sweep finds. */
export class Findings {
  readonly #property: Property;
  readonly #violations: Violation[] = [];
  readonly #exclusions: Exclusion[] = [];
  readonly #figures: Record<string, number> = { checked: 0 };

  constructor(property: Property) {
    this.#property = property;
  }

  /** A case was decided; a message means that it violates. */
  decide(name: string, records: readonly HistoryRecord[], message: string | undefined): void {
    this.#figures.checked = (this.#figures.checked ?? 0) + 1;
    if (message !== undefined) this.#violations.push({ message, name, records });
  }

  /** A case cannot be judged. */
  exclude(record: HistoryRecord, reason: string): void {
    this.#exclusions.push({ reason, record });
  }

  /** One more of what is counted under this name. */
  count(figure: string): void {
    this.#figures[figure] = (this.#figures[figure] ?? 0) + 1;
  }

  /** Keeps the smallest of what is reported under this name. */
  least(figure: string, value: number): void {
    this.#figures[figure] = Math.min(this.#figures[figure] ?? Number.POSITIVE_INFINITY, value);
  }

  /** Keeps the largest of what is reported under this name. */
  most(figure: string, value: number): void {
    this.#figures[figure] = Math.max(this.#figures[figure] ?? Number.NEGATIVE_INFINITY, value);
  }

  result(): SweepResult {
    const isEmpty = this.#figures.checked === 0;
    return {
      property: this.#property,
      verdict: this.#violations.length > 0 ? "violation" : isEmpty ? "empty" : "ok",
      violations: this.#violations,
      exclusions: this.#exclusions,
      figures: this.#figures,
    };
  }
}

/** An instant or a length as messages show it. */
export function showMs(ms: number): string {
  return `${Number(ms.toFixed(3))} ms`;
}
