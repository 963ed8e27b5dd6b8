/** The texts that the pages derive from the data. The functions are pure, so tests need no browser. */
import type { FindingView, LockRow, Problem } from "../api.js";
import { plain } from "../plain.js";
import { shellWord } from "../shell-word.js";
import { count as counted } from "./format.js";

/** A number, and the filter that lists the locks that it counts. */
export interface Tally {
  readonly word: string;
  readonly n: number;
  readonly q: string;
}

/** The tallies, in display order. */
export function talliesOf(rows: readonly LockRow[]): readonly Tally[] {
  const count = (fits: (row: LockRow) => boolean): number => rows.filter(fits).length;
  return [
    { word: "held", n: count(({ state }) => state === "held"), q: "state:held" },
    { word: "waited for", n: count(({ waiterCount }) => waiterCount > 0), q: "waiting" },
    { word: "paused", n: count(({ pause }) => pause !== null), q: "paused" },
    { word: "gone", n: count(({ goneCount }) => goneCount > 0), q: "gone" },
  ];
}

/** Whether a deadlock is possible: some lock is held and has waiters. */
export function mayDeadlock(rows: readonly LockRow[]): boolean {
  return rows.some(({ holderCount, waiterCount }) => holderCount > 0 && waiterCount > 0);
}

/** The text for a search that found `n` deadlocks but did not read all locks. */
export function partialText(n: number): string {
  const more = n === 0 ? "there may be deadlocks" : "there may be more deadlocks";
  return `Not all locks were searched, so ${more}: there are too many locks, or a server did not reply.`;
}

/** Whether the typed text is the name, either unchanged or as displayed. Control characters cannot be typed. */
export function isNameTyped(typed: string, name: string): boolean {
  return typed === name || typed === plain(name);
}

/**
 * The command that releases exactly this hold. Undefined if the CLI cannot name it, or if the lock needs another
 * topology: the command would need server addresses that the page does not know.
 */
export function releaseCommand(
  { name, key, needsTopology }: Pick<LockRow, "name" | "key" | "needsTopology">,
  token: number | null,
): string | undefined {
  if (token === null || key !== null || needsTopology !== null) return undefined;
  // A name that starts with a dash would be parsed as a flag.
  if (name.startsWith("-") || plain(name) !== name) return undefined;
  return `holdfast release ${shellWord(name)} --token ${token} -m 'WHY'`;
}

/** What a visitor needs to change a lock that needs another topology; undefined for all other locks. */
export function topologyText({
  needsTopology,
  onServers,
}: Pick<LockRow, "needsTopology" | "onServers">): string | undefined {
  if (needsTopology === "redlock")
    return "This is a Redlock on several servers, and this page shows only what one of them knows. To see and release the lock, use a console or the CLI with all of its servers (--redlock).";
  if (needsTopology !== "single-server") return undefined;
  const where = onServers.length === 0 ? "" : ` (${plain(onServers.join(", "))})`;
  return onServers.length > 1
    ? `This name is a different lock on each of ${onServers.length} servers${where}. To change one of these locks, use a console or the CLI with one of them alone (-r).`
    : `This lock is on a single server${where}, and this console has several. To change the lock, use a console or the CLI with that server alone (-r).`;
}

/** How to free a lock whose holder is gone; undefined if this page offers no way. */
export function freeText({ isButton, isCommand }: { isButton: boolean; isCommand: boolean }): string | undefined {
  if (isButton && isCommand) return "To free the lock now, force-release it below, or run the printed command.";
  if (isButton) return "To free the lock now, force-release it below.";
  return isCommand ? "To free the lock now, run the printed command." : undefined;
}

/** The heading above the server's response to an action. `problem` undefined: there was no response. */
export function problemHeading(problem: Pick<Problem, "status" | "code" | "mayHaveRun"> | undefined): string {
  // A Redlock whose state is undecided may have been released on the servers that replied.
  if (problem === undefined || problem.mayHaveRun === true || problem.code === "undecided")
    return "The outcome is unknown";
  // A client may have other locks, which were released before one with a key of a wrong type.
  return problem.status < 500 && problem.code !== "wrong-type" ? "Nothing was changed" : "The action failed";
}

const RANK: Readonly<Record<FindingView["severity"], number>> = { critical: 0, warning: 1, info: 2 };

/** The doctor's results in one line, the results to list, and the checks that are fine on every server. */
export function doctorSummary(results: readonly FindingView[]): {
  readonly text: string;
  readonly findings: readonly FindingView[];
  readonly fine: readonly string[];
} {
  const of = (wanted: FindingView["status"]): readonly FindingView[] =>
    results.filter(({ status }) => status === wanted);
  const [found, unknown, ok] = [of("finding"), of("unknown"), of("ok")];
  const findings = [...found.toSorted((a, b) => RANK[a.severity] - RANK[b.severity]), ...unknown];
  const listed = new Set(findings.map(({ id }) => id));
  const parts = [found.length === 0 ? "no findings" : counted(found.length, "finding")];
  if (unknown.length > 0) parts.push(`${unknown.length} unknown`);
  parts.push(`${counted(ok.length, "result")} ok`);
  const fine = [...new Set(ok.map(({ id }) => id))].filter((id) => !listed.has(id));
  return { text: parts.join(", "), findings, fine };
}
