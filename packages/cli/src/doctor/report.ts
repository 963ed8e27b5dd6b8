/** Findings for people: grouped by how bad they are, each with what may go wrong and what to do about it. */

import { plain } from "@holdfast/console/text";
import type { Paint, Style } from "../frame/output.js";
import type { Finding } from "./check.js";
import { counted, few } from "./words.js";

interface Heading {
  readonly title: string;
  readonly style: Style;
  isIn(finding: Finding): boolean;
}

const isFinding = ({ status }: Finding): boolean => status === "finding";

const HEADINGS: readonly Heading[] = [
  { title: "CRITICAL", style: "red", isIn: (one) => isFinding(one) && one.severity === "critical" },
  { title: "WARNING", style: "yellow", isIn: (one) => isFinding(one) && one.severity === "warning" },
  { title: "INFO", style: "cyan", isIn: (one) => isFinding(one) && one.severity === "info" },
  { title: "UNKNOWN (not verified)", style: "bold", isIn: ({ status }) => status === "unknown" },
];

/** How the examination was made. */
export interface About {
  readonly address: string;
  readonly tookMs: number;
  /** Whether what is well is shown too. */
  readonly isVerbose: boolean;
  readonly paint: Paint;
}

/** All of it, each line with its end; what was skipped is not shown. */
export function report(findings: readonly Finding[], { address, tookMs, isVerbose, paint }: About): string {
  const well: Heading = { title: "OK", style: "green", isIn: ({ status }) => status === "ok" };
  const groups = [...HEADINGS, ...(isVerbose ? [well] : [])].flatMap((heading) => {
    const its = findings.filter(heading.isIn);
    if (its.length === 0) return [];
    const entries = isVerbose ? its.map((one) => entry(one, paint)) : entriesByRight(its, paint);
    return [`${paint(heading.style, heading.title)}\n${entries.join("")}\n`];
  });
  return `${groups.join("")}${summary(findings, address, tookMs)}\n`;
}

/** As entries, those that a single missing right leaves open as one: its place is that of the first of them. */
function entriesByRight(findings: readonly Finding[], paint: Paint): readonly string[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const right = missingRight(finding);
    const key = right ?? `${finding.id} ${finding.node} ${groups.size}`;
    groups.set(key, [...(groups.get(key) ?? []), finding]);
  }
  return [...groups].map(([right, group]) => {
    const [first] = group as [Finding];
    if (group.length === 1) return entry(first, paint);
    const nodes = [...new Set(group.map(({ node }) => node))];
    const ids = [...new Set(group.map(({ id }) => id))].join(", ");
    return entry(
      { ...first, id: ids, node: few(nodes), measured: `not verified without ${right}`, fix: fixOf(right) },
      paint,
    );
  });
}

/** `INFO` of "permit INFO to this user, or …"; undefined if it is not a right that is missing. */
function missingRight({ status, fix }: Finding): string | undefined {
  return status === "unknown" ? /^permit ([A-Z ]+(?:(?:and|or) [A-Z ]+)?) to this user\b/.exec(fix)?.[1] : undefined;
}

function fixOf(right: string): string {
  return `permit ${right} to this user; -v shows each check`;
}

function entry({ id, node, measured, risk, fix }: Finding, paint: Paint): string {
  const lines = [`  ${paint("bold", id)}  ${plain(node)}: ${plain(measured)}`];
  if (risk !== "") lines.push(`      ${paint("dim", "risk")}  ${plain(risk)}`);
  if (fix !== "") lines.push(`      ${paint("dim", "fix ")}  ${plain(fix)}`);
  return `${lines.join("\n")}\n`;
}

function summary(findings: readonly Finding[], address: string, tookMs: number): string {
  const count = (isIn: (finding: Finding) => boolean): number => findings.filter(isIn).length;
  const of = (severity: string): number => count((one) => isFinding(one) && one.severity === severity);
  const checks = new Set(findings.map(({ id }) => id)).size;
  const nodes = new Set(findings.map(({ node }) => node).filter((node) => node !== "all")).size;
  const numbers = [
    `${of("critical")} critical`,
    counted(of("warning"), "warning"),
    `${of("info")} info`,
    `${count(({ status }) => status === "unknown")} unknown`,
    `${count(({ status }) => status === "ok")} ok`,
    `${count(({ status }) => status === "skipped")} skipped`,
  ];
  return `${counted(checks, "check")} of ${counted(nodes, "server")} at ${address} in ${(tookMs / 1_000).toFixed(1)} s: ${numbers.join(", ")}`;
}
