/** The results of the mutants of each file: from Stryker's JSON report, and as stored. */

/** The mutants of one file, by result. Mutants that do not compile or are excluded are not counted. */
export interface FileScore {
  /** The name of the file in packages/holdfast/src/core. */
  readonly file: string;
  readonly killed: number;
  readonly timedOut: number;
  readonly survived: number;
  /** No test runs the changed code. */
  readonly noCoverage: number;
  /** The share of the counted mutants that tests noticed, in percent with one decimal. */
  readonly score: number;
}

/** The part of Stryker's report that is read here. */
interface StrykerReport {
  readonly files: Readonly<Record<string, { readonly mutants: readonly { readonly status: string }[] }>>;
}

/**
 * One score for each file that has mutants.
 *
 * @throws SyntaxError  not a report of Stryker
 */
export function scoresOf(report: unknown): FileScore[] {
  if (!isReport(report)) throw new SyntaxError("a report of Stryker has `files`");
  return Object.entries(report.files).flatMap(([path, { mutants }]) => {
    const counted = (status: string): number => mutants.filter((mutant) => mutant.status === status).length;
    const [killed, timedOut] = [counted("Killed"), counted("Timeout")];
    const [survived, noCoverage] = [counted("Survived"), counted("NoCoverage")];
    const file = path.slice(path.lastIndexOf("/") + 1);
    const all = killed + timedOut + survived + noCoverage;
    if (all === 0) return [];
    return [{ file, killed, timedOut, survived, noCoverage, score: percent(killed + timedOut, all) }];
  });
}

/** Merges scores by file name; newer ones take precedence. */
export function merged(older: readonly FileScore[], newer: readonly FileScore[]): FileScore[] {
  const byFile = new Map([...older, ...newer].map((score) => [score.file, score]));
  return [...byFile.values()].toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

/** The minimum score of a file, in percent. With a lower score, its mutants must be examined. */
export const LEAST_SCORE = 70;

/** The files with less than `LEAST_SCORE`. */
export function tooLow(scores: readonly FileScore[]): FileScore[] {
  return scores.filter(({ score }) => score < LEAST_SCORE);
}

/** The sum of all scores. */
export function total(scores: readonly FileScore[]): FileScore {
  const sum = (count: (score: FileScore) => number): number => scores.reduce((all, each) => all + count(each), 0);
  const killed = sum((each) => each.killed);
  const timedOut = sum((each) => each.timedOut);
  const survived = sum((each) => each.survived);
  const noCoverage = sum((each) => each.noCoverage);
  const score = percent(killed + timedOut, killed + timedOut + survived + noCoverage);
  return { file: "together", killed, timedOut, survived, noCoverage, score };
}

function percent(part: number, all: number): number {
  return all === 0 ? 0 : Math.round((part / all) * 1_000) / 10;
}

function isReport(value: unknown): value is StrykerReport {
  return typeof value === "object" && value !== null && "files" in value && typeof value.files === "object";
}
