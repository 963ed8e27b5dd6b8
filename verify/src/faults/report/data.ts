/** What a report is made from. */
import type { Subject } from "../subject.js";
import type { CellVerdict } from "../verdict.js";
import type { PartResult } from "./results.js";

/** How the run was set up. */
export interface RunFacts {
  readonly seed: number;
  readonly lastsMs: number;
  readonly jobs: number;
  readonly tookMs: number;
  /** What was driven. */
  readonly subjects: readonly SubjectFacts[];
}

/** What a reader needs to know about a subject. */
export type SubjectFacts = Pick<Subject, "name" | "version" | "settings" | "letters">;

/** All that stands in a report. */
export interface ReportData {
  readonly facts: RunFacts;
  readonly verdicts: readonly CellVerdict[];
  /** Of other commands, found beside this one. */
  readonly parts: readonly PartResult[];
  readonly versions: Readonly<Record<string, string>>;
  /** When it was written, as ISO 8601. */
  readonly writtenAt: string;
}
