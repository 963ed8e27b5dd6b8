/** The results of a run of many cells, as text and as numbers. */
import { groupBy } from "../history/history.js";
import { buildOf, isHoldfast } from "./liveness/build.js";
import { isLiveness } from "./matrix.js";
import { isPromised } from "./outcome.js";
import type { CellOutcome, CellVerdict } from "./verdict.js";

/** The number of cells, and of their runs. */
export interface Totals {
  /** Cells of which every run passed. */
  readonly passed: number;
  readonly failed: number;
  /** Cells that this machine cannot run; counted separately, and listed. */
  readonly unavailable: number;
  /** Cells of peers with a run that showed nothing; counted separately, in the line of the peer. */
  readonly undecided: number;
  readonly runs: number;
  readonly operations: number;
  readonly faults: number;
}

/** Whether a verdict counts as a failure. Results of peers are shown but never count. */
export function isFailure({ outcome, subject }: CellVerdict): boolean {
  return subject === "holdfast" && outcome !== "ok" && outcome !== "unavailable";
}

/** Peers without any valid run. Then the runner cannot use them, which is its own failure. */
export function silentPeers(verdicts: readonly CellVerdict[]): string[] {
  const of = groupBy(
    verdicts.filter(({ subject }) => subject !== "holdfast"),
    ({ subject }) => subject,
  );
  return [...of].filter(([, all]) => all.every(isUndecided)).map(([name]) => name);
}

function isUndecided({ outcome }: CellVerdict): boolean {
  return outcome === "void" || outcome === "unknown";
}

/** Sums up verdicts. A cell that failed once counts as failed. */
export function totalsOf(verdicts: readonly CellVerdict[]): Totals {
  const cells = new Map<string, "passed" | "failed" | "unavailable" | "undecided">();
  for (const verdict of verdicts) {
    const key = `${verdict.subject} ${verdict.cell.id}`;
    if (isFailure(verdict)) cells.set(key, "failed");
    else if (isUndecided(verdict)) cells.set(key, "undecided");
    else if (!cells.has(key)) cells.set(key, verdict.outcome === "unavailable" ? "unavailable" : "passed");
  }
  const words = [...cells.values()];
  return {
    passed: words.filter((word) => word === "passed").length,
    failed: words.filter((word) => word === "failed").length + silentPeers(verdicts).length,
    unavailable: words.filter((word) => word === "unavailable").length,
    undecided: words.filter((word) => word === "undecided").length,
    runs: verdicts.length,
    operations: verdicts.reduce((sum, { operations }) => sum + operations, 0),
    faults: verdicts.reduce((sum, { faults }) => sum + faults, 0),
  };
}

/** The command that repeats a run. */
export function replayOf({ cell, seed, subject, library }: CellVerdict, lastsMs: number): string {
  const build = buildOf(subject);
  const other = build === undefined ? ` --subject ${subject}` : ` --build ${build}`;
  const peer = subject === "holdfast" ? "" : other;
  return `npm run verify:faults -- --cells ${cell.id} --seed ${seed} --seconds ${lastsMs / 1_000}${peer}${library === undefined ? "" : ` --client ${library}`}`;
}

const BREACHES_SHOWN = 3;

/** The summary for the terminal: failures with the commands to repeat them, cells that could not run, and totals. */
export function summary(verdicts: readonly CellVerdict[], lastsMs: number): string {
  const { passed, failed, runs, operations, faults } = totalsOf(verdicts);
  const unavailable = new Map(
    verdicts
      .filter(({ outcome }) => outcome === "unavailable")
      .map(({ cell, subject, notes }) => [`${cell.id} of ${subject}`, notes.join("; ")]),
  );
  return [
    ...verdicts.filter(isFailure).map((verdict) => failure(verdict, lastsMs)),
    ...verdicts.filter((verdict) => !isFailure(verdict) && hasFigures(verdict)).map(figures),
    ...Array.from(unavailable, ([what, why]) => `NOT RUN ${what}: ${why}`),
    ...peers(verdicts),
    ...silentPeers(verdicts).map((name) => `FAILED ${name}: none of its runs showed anything`),
    `${runs} runs, ${operations} operations, ${faults} faults`,
    `${passed} passed, ${failed} failed`,
  ].join("\n");
}

function failure(verdict: CellVerdict, lastsMs: number): string {
  const { cell, seed, subject, outcome, breaches, notes } = verdict;
  const more = breaches.length - BREACHES_SHOWN;
  // Violations that a control must show come after those that must not occur.
  const worstFirst = breaches.toSorted(
    (a, b) => Number(isPromised(cell, b, subject)) - Number(isPromised(cell, a, subject)),
  );
  return [
    `\n${outcome.toUpperCase()} ${cell.id} (${subject}, expected ${cell.expectation}), seed ${seed}`,
    ...worstFirst.slice(0, BREACHES_SHOWN).map(({ property, message }) => `  ${property}: ${message}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...notes.map((note) => `  ${note}`),
    `  again: ${replayOf(verdict, lastsMs)}`,
  ].join("\n");
}

function hasFigures({ cell, outcome }: CellVerdict): boolean {
  return isLiveness(cell) && outcome !== "unavailable";
}

/** The measurements of a liveness cell. For a failed cell, they are among its notes. */
function figures({ cell, subject, library = "ioredis", notes }: CellVerdict): string {
  const by = isHoldfast(subject) ? `${subject} on ${library}` : subject;
  return [`\n${cell.id} (${by})`, ...notes.map((note) => `  ${note}`)].join("\n");
}

/** One line per peer, with the number of cells per outcome. */
function peers(verdicts: readonly CellVerdict[]): string[] {
  const names = new Set(verdicts.map(({ subject }) => subject).filter((subject) => subject !== "holdfast"));
  return [...names].map((name) => {
    const counts = new Map<CellOutcome, number>();
    for (const { subject, outcome } of verdicts) {
      if (subject === name) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    return `${name}: ${Array.from(counts, ([outcome, count]) => `${count} ${outcome}`).join(", ")}`;
  });
}
