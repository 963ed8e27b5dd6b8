/** The targets of several runs on several servers as one table: each target with the result and verdict of each server. */
import type { Target } from "./measurements/entry.js";
import { type Report, serverOf, verdict } from "./report.js";

/** The targets of one run. */
export interface GoalRun {
  readonly server: string;
  readonly targets: readonly Target[];
}

/** The table is between these lines of the page. */
const BEGIN = "<!-- goals: begin -->";
const END = "<!-- goals: end -->";

/** The targets of a report, without its measurements. */
export function goalRunOf({ machine, comparisons }: Report): GoalRun {
  return { server: serverOf(machine), targets: comparisons.flatMap(({ targets }) => targets) };
}

/** The table in Markdown: a row per target, a column per server. A target is reached if every run reached it. */
export function goalsTable(runs: readonly GoalRun[]): string {
  const servers = [...new Set(runs.map(({ server }) => server))];
  const whats = [...new Set(runs.flatMap(({ targets }) => targets.map(({ what }) => what)))];
  const lines = whats.map((what) => {
    const found = servers.map((server) => targetsOf(runs, server, what));
    return [what, boundsOf(servers, found), ...found.map(cellOf)];
  });
  const header = ["row", "target", ...servers.map((server) => `${server}, ${countOf(runs, server)}`)];
  return [header, header.map((_, i) => (i === 0 ? "---" : "---:")), ...lines]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

/** Returns the page with its table replaced. @throws RangeError  the page has no markers for the table */
export function withGoals(page: string, table: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new RangeError(`the page has no ${BEGIN} and ${END}`);
  return `${page.slice(0, from + BEGIN.length)}\n\n${table}\n\n${page.slice(to)}`;
}

function targetsOf(runs: readonly GoalRun[], server: string, what: string): readonly Target[] {
  return runs
    .filter((run) => run.server === server)
    .flatMap(({ targets }) => targets.filter((target) => target.what === what));
}

/** The bound, or the bound of each server if they differ. */
function boundsOf(servers: readonly string[], found: readonly (readonly Target[])[]): string {
  // The best peer can differ from run to run.
  const bounds = found.map((targets) => [...new Set(targets.map(({ bound }) => bound))].join(" or "));
  const known = new Set(bounds.filter((bound) => bound !== ""));
  if (known.size <= 1) return [...known][0] ?? "";
  return servers.map((server, i) => `${bounds[i]} (${server})`).join(", ");
}

function cellOf(targets: readonly Target[]): string {
  if (targets.length === 0) return "not measured";
  const isReached = targets.some(({ reached }) => reached === false)
    ? false
    : targets.every(({ reached }) => reached === true) || null;
  return `${joined(targets.map(({ measured }) => measured))}: ${verdict(isReached).toLowerCase()}`;
}

/** Several results of one row. A unit that all of them share is written once. */
function joined(results: readonly string[]): string {
  const parts = results.map((result) => /^([\d.,]+)(.*)$/.exec(result) ?? [result, result, ""]);
  const units = new Set(parts.map(([, , unit]) => unit));
  if (new Set(results).size === 1) return results[0] ?? "";
  return units.size === 1 ? `${parts.map(([, number]) => number).join(", ")}${[...units][0]}` : results.join(", ");
}

function countOf(runs: readonly GoalRun[], server: string): string {
  const count = runs.filter((run) => run.server === server).length;
  return count === 1 ? "1 run" : `${count} runs`;
}
