/** The results of many seeds as numbers, and a failing seed as text with instructions to reproduce it. */
import { writeFileSync } from "node:fs";
import { writeHistory } from "../history/index.js";
import { picture } from "../picture/index.js";
import { profileNameOf } from "./kills.js";
import type { Plan } from "./plan.js";
import { describePlan, runPlan, type Verdict } from "./run.js";
import { shrink } from "./shrink.js";

/** The counts of one process, or the sum of several. */
export interface Total {
  seeds: number;
  grants: number;
  events: number;
  operations: number;
  failed: number;
  unknown: number;
  /** Violations without a guarantee, in runs on several servers. */
  excused: number;
  /** The number of decided cases of each property. */
  readonly checked: Record<string, number>;
  readonly byKind: Record<string, { seeds: number; grants: number; failed: number }>;
}

/** A total of zero. */
export function emptyTotal(): Total {
  return { seeds: 0, grants: 0, events: 0, operations: 0, failed: 0, unknown: 0, excused: 0, checked: {}, byKind: {} };
}

/** Counts one run. */
export function count(total: Total, plan: Plan, verdict: Verdict): void {
  const isFailed = verdict.violations.length > 0;
  total.seeds += 1;
  total.grants += verdict.grantCount;
  total.events += verdict.eventCount;
  total.operations += verdict.history.operations.length;
  total.failed += isFailed ? 1 : 0;
  total.unknown += verdict.unknown.length > 0 ? 1 : 0;
  for (const [property, cases] of verdict.checked) total.checked[property] = (total.checked[property] ?? 0) + cases;
  const own = ofKind(total, plan.kind);
  own.seeds += 1;
  own.grants += verdict.grantCount;
  own.failed += isFailed ? 1 : 0;
}

function ofKind({ byKind }: Total, kind: string): Total["byKind"][string] {
  const own = byKind[kind] ?? { seeds: 0, grants: 0, failed: 0 };
  byKind[kind] = own;
  return own;
}

/** Adds the counts of another process. */
export function addTotal(total: Total, other: Total): void {
  for (const field of ["seeds", "grants", "events", "operations", "failed", "unknown", "excused"] as const)
    total[field] += other[field];
  for (const [property, cases] of Object.entries(other.checked))
    total.checked[property] = (total.checked[property] ?? 0) + cases;
  for (const [kind, own] of Object.entries(other.byKind)) {
    const sum = ofKind(total, kind);
    sum.seeds += own.seeds;
    sum.grants += own.grants;
    sum.failed += own.failed;
  }
}

/** The violations of a run, one line each. */
export function describeViolations(verdict: Verdict): string {
  return verdict.violations
    .map(({ property, atMs, text }) => `VIOLATION ${property} at ${atMs.toFixed(1)} ms: ${text}\n`)
    .join("");
}

/** The smallest form of a run that fails in the same way, step by step, with instructions to play it. */
export async function describeSmallest(plan: Plan): Promise<string> {
  const small = await shrink(plan);
  const verdict = await runPlan(small, {}, true);
  const ids = [...small.sessions, ...small.faults].map(({ id }) => id);
  const replay = `--seed ${plan.seed} --kind ${plan.kind} --profile ${profileNameOf(plan)} --only ${ids.join(",")} --trace`;
  return (
    `\n${describePlan(small)}\n\n${verdict.trace.join("\n")}\n\n${describeViolations(verdict)}` +
    `Replay: node verify/dist/simulation/main.js ${replay}\n`
  );
}

/** The files for a run. */
export interface Files {
  readonly history?: string | undefined;
  readonly picture?: string | undefined;
}

/** Writes the records of a run, and draws the first violation that has records. */
export function writeRun(plan: Plan, { records, history, findings }: Verdict, files: Files): void {
  if (files.history !== undefined) writeFileSync(files.history, writeHistory(records));
  if (files.picture === undefined) return;
  const [first] = findings.filter((finding) => finding.records.length > 0);
  const title = `seed ${plan.seed}, ${plan.kind}, ${profileNameOf(plan)}`;
  const violation = first && { message: `${first.property}: ${first.text}`, records: first.records };
  const isLock = history.operations.some(({ lockName }) => lockName === first?.name);
  writeFileSync(
    files.picture,
    picture(history, { title, ...(violation && { violation }), ...(first && isLock && { lockName: first.name }) }),
  );
}
