/** The report of the profiles: the processor time per operation of each contestant, by whose code used it. */
import type { Machine } from "../machine.js";
import type { Share } from "../worker/orders.js";
import type { Spent } from "./spent.js";
import type { Workload } from "./workloads.js";

/** What `--profile` measured. */
export interface ProfileReport {
  readonly machine: Machine;
  readonly autoPipelining: boolean;
  readonly leaseMs: number;
  readonly tables: readonly ProfileTable[];
}

/** One workload. */
export interface ProfileTable {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly ProfileLine[];
  /** The functions of Holdfast that took the most time, in µs per operation. */
  readonly heaviest: readonly { readonly name: string; readonly us: number }[];
}

/** One contestant. All times are in µs per operation. */
export interface ProfileLine {
  readonly name: string;
  readonly operations: number;
  readonly us: Readonly<Record<Share, number>>;
  readonly serverUs: number;
  /** The time of all processes and servers, divided by that of the yardstick. */
  readonly ratio: number;
}

const OURS = "holdfast";
const SHOWN = 6;

/** The names of the columns. */
export const SHARES: readonly (readonly [Share, string])[] = [
  ["library", "lock library"],
  ["client", "client library"],
  ["node", "Node"],
  ["loop", "event loop, kernel"],
  ["collector", "collector"],
  ["bench", "benchmark"],
];

/** @param spents  the result of each contestant, the yardstick first */
export function tableOf(
  { name, title, unit }: Workload,
  spents: readonly { readonly name: string; readonly spent: Spent }[],
): ProfileTable {
  const lines = spents.map(({ name: contestant, spent }) => lineOf(contestant, spent));
  const yardstick = lines[0] === undefined ? Number.NaN : total(lines[0]);
  const ours = spents.find((one) => one.name === OURS)?.spent;
  return {
    name,
    title,
    unit,
    lines: lines.map((line) => ({ ...line, ratio: total(line) / yardstick })),
    heaviest: ours === undefined ? [] : heaviestOf(ours),
  };
}

/** The cells of a line, in the order of `SHARES`, then the sum, the server's and the ratio. */
export function cellsOf(line: ProfileLine): readonly string[] {
  const { us, serverUs, ratio } = line;
  const inProcess = total(line) - serverUs;
  return [...SHARES.map(([share]) => us[share]), inProcess, serverUs].map(shown).concat(`${ratio.toFixed(2)} ×`);
}

/** The column heads of these cells. */
export const HEADS: readonly string[] = [...SHARES.map(([, head]) => head), "processes", "server", "all"];

/** The table as text. */
export function profileText({ title, unit, lines, heaviest }: ProfileTable): string {
  const drawn = [["", ...HEADS], ...lines.map((line) => [line.name, ...cellsOf(line)])];
  const widths = ["", ...HEADS].map((_, i) => Math.max(...drawn.map((cells) => (cells[i] ?? "").length)));
  const padded = drawn.map((cells) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  "),
  );
  return [`\n${title}: processor time in µs per ${unit}`, ...padded, ...heaviestText(heaviest)]
    .map((line, i) => (i === 0 ? line : `  ${line}`))
    .join("\n");
}

/** Lists the functions of Holdfast that took the most time. Empty if none were profiled. */
export function heaviestText(heaviest: ProfileTable["heaviest"]): readonly string[] {
  if (heaviest.length === 0) return [];
  return [`Holdfast's heaviest functions: ${heaviest.map(({ name, us }) => `${name} ${shown(us)}`).join(", ")}.`];
}

function lineOf(name: string, { operations, profiles, serverUs }: Spent): ProfileLine {
  const us = Object.fromEntries(
    SHARES.map(([share]) => [share, profiles.reduce((sum, profile) => sum + profile.us[share], 0) / operations]),
  ) as Record<Share, number>;
  return { name, operations, us, serverUs: serverUs / operations, ratio: Number.NaN };
}

function total({ us, serverUs }: ProfileLine): number {
  return Object.values(us).reduce((sum, one) => sum + one, serverUs);
}

function heaviestOf({ operations, profiles }: Spent): ProfileTable["heaviest"] {
  const sums = new Map<string, number>();
  for (const { heaviest } of profiles)
    for (const { name, us } of heaviest) sums.set(name, (sums.get(name) ?? 0) + us / operations);
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SHOWN)
    .map(([name, us]) => ({ name, us }));
}

function shown(us: number): string {
  return us.toFixed(1);
}
