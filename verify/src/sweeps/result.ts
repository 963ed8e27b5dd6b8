import type { HistoryRecord } from "../history/records.js";

/** A property of the reference that a sweep checks. */
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

/** A violation, with the records that show it. */
export interface Violation {
  readonly message: string;
  /** The name of the lock or the protected resource. */
  readonly name: string;
  readonly records: readonly HistoryRecord[];
}

/** A record that was excluded from the check, with the reason. */
export interface Exclusion {
  readonly reason: string;
  readonly record: HistoryRecord;
}

/** The result of a sweep over one history. */
export interface SweepResult {
  readonly property: Property;
  /** `empty`: the property applies to nothing in the history, so it shows nothing. */
  readonly verdict: "ok" | "violation" | "empty";
  readonly violations: readonly Violation[];
  readonly exclusions: readonly Exclusion[];
  /** `checked` is the number of decided cases; each sweep defines the others. */
  readonly figures: Readonly<Record<string, number>>;
}

/** Collects the findings of a sweep. */
export class Findings {
  readonly #property: Property;
  readonly #violations: Violation[] = [];
  readonly #exclusions: Exclusion[] = [];
  readonly #figures: Record<string, number> = { checked: 0 };

  constructor(property: Property) {
    this.#property = property;
  }

  /** Records a decided case; a message means a violation. */
  decide(name: string, records: readonly HistoryRecord[], message: string | undefined): void {
    this.#figures.checked = (this.#figures.checked ?? 0) + 1;
    if (message !== undefined) this.#violations.push({ message, name, records });
  }

  /** Records a case that cannot be judged. */
  exclude(record: HistoryRecord, reason: string): void {
    this.#exclusions.push({ reason, record });
  }

  /** Increments a figure. */
  count(figure: string): void {
    this.#figures[figure] = (this.#figures[figure] ?? 0) + 1;
  }

  /** Keeps the smallest value of a figure. */
  least(figure: string, value: number): void {
    this.#figures[figure] = Math.min(this.#figures[figure] ?? Number.POSITIVE_INFINITY, value);
  }

  /** Keeps the largest value of a figure. */
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

/** Formats a time for messages. */
export function showMs(ms: number): string {
  return `${Number(ms.toFixed(3))} ms`;
}
