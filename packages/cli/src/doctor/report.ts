/** Prints findings for people, grouped by severity. Each finding says what may go wrong and how to fix it. */

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

/** Facts about the examination and how to print it. */
export interface About {
  readonly address: string;
  readonly tookMs: number;
  /** Whether checks without a problem are printed too. */
  readonly isVerbose: boolean;
  readonly paint: Paint;
}

/** The whole report. Every line ends with a newline. Skipped checks are not printed. */
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

/**
 * Formats the findings as entries. Findings that are unknown because of the same missing permission become one entry,
 * at the position of the first.
 */
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

/**
 * Returns `INFO` for a fix such as "grant INFO to this user, or …"; undefined if the fix is not about a missing
 * permission.
 */
function missingRight({ status, fix }: Finding): string | undefined {
  return status === "unknown" ? /^grant ([A-Z ]+(?:(?:and|or) [A-Z ]+)?) to this user\b/.exec(fix)?.[1] : undefined;
}

function fixOf(right: string): string {
  return `grant ${right} to this user; -v shows each check`;
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
