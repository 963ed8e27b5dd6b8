/** Writes bench/docs/benchmarks.md, and the folder next to it with the numbers as JSON and the pictures drawn from them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CurveReport, MeasuredCurve } from "../curves/report.js";
import type { MomentsReport } from "../moments/report.js";
import { pictures } from "../pictures/bars.js";
import { lines } from "../pictures/lines.js";
import { timeline } from "../pictures/timeline.js";
import type { ProfileReport } from "../profiles/report.js";
import type { Report } from "../report.js";
import type { Outcome } from "../results.js";
import { markdown } from "./markdown.js";

const RESULTS = "results.json";
const CURVES = "curves.json";
const PROFILES = "profiles.json";
const MOMENTS = "moments.json";
const SHOWN_MS = 20;

/** A JSON replacer that leaves out the sections: they are long, and only needed for a picture. */
export function withoutSections(key: string, value: unknown): unknown {
  return key === "sections" ? undefined : value;
}

/** Writes the results of all measurements, and regenerates the document. */
export function writeReport(folder: string, report: Report): void {
  const own = folderIn(folder);
  for (const comparison of report.comparisons) {
    for (const [file, picture] of pictures(comparison)) writeFileSync(join(own, file), picture);
    if (comparison.name === "hot") {
      const panels = shownOf(comparison.outcomes).map(({ name, sections = [] }) => ({ name, sections }));
      const title = "hot key: who held when";
      writeFileSync(join(own, "hot-timeline.svg"), timeline(title, panels, report.callers, SHOWN_MS));
    }
  }
  writeFileSync(join(own, RESULTS), `${JSON.stringify(report, withoutSections, 2)}\n`);
  writeDocument(folder);
}

/** Writes the curves, and regenerates the document. Curves that were not measured this time stay, with their conditions. */
export function writeCurves(folder: string, report: CurveReport): void {
  const own = folderIn(folder);
  for (const { name, title, figures, lines: all } of report.curves)
    writeFileSync(join(own, `curve-${name}.svg`), lines(title, figures.x, figures.y, all));
  const curves = merged(read<CurveReport>(join(own, CURVES))?.curves ?? [], report.curves);
  writeFileSync(join(own, CURVES), `${JSON.stringify({ curves }, null, 2)}\n`);
  writeDocument(folder);
}

/** Writes the profiles, and regenerates the document. */
export function writeProfiles(folder: string, report: ProfileReport): void {
  writeFileSync(join(folderIn(folder), PROFILES), `${JSON.stringify(report, null, 2)}\n`);
  writeDocument(folder);
}

/** Writes the times of the steps of a hand-over, and regenerates the document. */
export function writeMoments(folder: string, report: MomentsReport): void {
  writeFileSync(join(folderIn(folder), MOMENTS), `${JSON.stringify(report, null, 2)}\n`);
  writeDocument(folder);
}

/** The document, generated from the numbers in the folder. */
export function documentOf(folder: string): string {
  const own = join(folder, "benchmarks");
  return markdown({
    report: read<Report>(join(own, RESULTS)),
    curves: read<CurveReport>(join(own, CURVES)),
    profiles: read<ProfileReport>(join(own, PROFILES)),
    moments: read<MomentsReport>(join(own, MOMENTS)),
  });
}

function writeDocument(folder: string): void {
  writeFileSync(join(folder, "benchmarks.md"), documentOf(folder));
}

/** The earlier curves, replaced if they were measured again, followed by the new ones. */
function merged(before: readonly MeasuredCurve[], now: readonly MeasuredCurve[]): readonly MeasuredCurve[] {
  const again = new Map(now.map((curve) => [curve.name, curve]));
  const isNew = ({ name }: MeasuredCurve): boolean => !before.some((curve) => curve.name === name);
  return [...before.map((curve) => again.get(curve.name) ?? curve), ...now.filter(isNew)];
}

/** Both modes of Holdfast, and the fastest peer. */
function shownOf(outcomes: readonly Outcome[]): readonly Outcome[] {
  const measured = outcomes.filter(({ sections }) => sections !== undefined);
  const peers = measured
    .filter(({ role }) => role === "peer")
    .toSorted((a, b) => (b.summaries[0]?.median ?? 0) - (a.summaries[0]?.median ?? 0));
  return [...measured.filter(({ role }) => role === "own"), ...peers.slice(0, 1)];
}

function folderIn(folder: string): string {
  const own = join(folder, "benchmarks");
  mkdirSync(own, { recursive: true });
  return own;
}

/** Reads a file that this module wrote. Undefined if it does not exist yet. */
function read<Content>(file: string): Content | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Content;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
