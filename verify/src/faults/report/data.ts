/** The data of a report. */
import type { Subject } from "../subject.js";
import type { CellVerdict } from "../verdict.js";
import type { PartResult } from "./results.js";

/** The settings of the run. */
export interface RunFacts {
  readonly seed: number;
  readonly lastsMs: number;
  readonly jobs: number;
  readonly tookMs: number;
  /** The tested subjects. */
  readonly subjects: readonly SubjectFacts[];
}

/** What a reader needs to know about a subject. */
export type SubjectFacts = Pick<Subject, "name" | "version" | "settings" | "letters">;

/** Everything that a report contains. */
export interface ReportData {
  readonly facts: RunFacts;
  readonly verdicts: readonly CellVerdict[];
  /** Results of other commands, found in the report's directory. */
  readonly parts: readonly PartResult[];
  readonly versions: Readonly<Record<string, string>>;
  /** When it was written, as ISO 8601. */
  readonly writtenAt: string;
}
