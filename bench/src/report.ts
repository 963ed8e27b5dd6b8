/** The report of a run, as data and as text. */
import type { Adapter } from "./adapters/adapter.js";
import type { Comparison } from "./compare.js";
import { type Machine, versionOf } from "./machine.js";
import type { Figure, Target } from "./measurements/entry.js";
import type { Outcome, Summary } from "./results.js";

/** Everything that one run of the command measured. `--json` prints it, and the document is generated from it. */
export interface Report {
  /** Whether no target was missed. Undecided targets do not count. */
  readonly reached: boolean;
  readonly machine: Machine;
  readonly contestants: readonly Contestant[];
  readonly repetitions: number;
  readonly callers: number;
  readonly waiters: number;
  readonly leases: number;
  readonly leaseMs: number;
  readonly autoPipelining: boolean;
  readonly comparisons: readonly Comparison[];
}

/** The measured libraries, with their versions and settings. */
export interface Contestant {
  readonly name: string;
  readonly version: string;
  readonly client: string;
  readonly settings: string;
}

/** Describes a contestant for the report. */
export function contestantOf({ name, package: packageName, version = "", client, settings }: Adapter): Contestant {
  return { name, version: packageName === undefined ? version : versionOf(packageName), client, settings };
}

/** The machine, the versions and the settings of each contestant, as lines of text. */
export function heading({
  machine,
  contestants,
  autoPipelining,
  leaseMs,
}: Omit<Report, "comparisons" | "reached">): string {
  const width = Math.max(...contestants.map(({ name, version }) => `${name} ${version}`.length));
  const lines = contestants.map(
    ({ name, version, client, settings }) => `  ${`${name} ${version}`.padEnd(width)}  on ${client}; ${settings}`,
  );
  return [...environment(machine, autoPipelining, leaseMs), ...lines].join("\n");
}

/** Two lines about the machine and the server of all runs. */
export function environment(machine: Machine, autoPipelining: boolean, leaseMs: number): readonly string[] {
  const ioredis = `ioredis ${machine.ioredis} (auto-pipelining ${autoPipelining ? "on" : "off"})`;
  return [
    `${machine.cores} cores, ${machine.cpu}, load ${machine.load.toFixed(1)} before; server and callers on this machine`,
    `Node ${machine.node}, ${serverOf(machine)}, ${ioredis}, node-redis ${machine.nodeRedis}, GLIDE ${machine.glide}; leases of ${leaseMs / 1_000} s`,
  ];
}

/** Name and version of the server. */
export function serverOf({ server, redis }: Machine): string {
  return `${server ?? "Redis"} ${redis}`;
}

/** The table of one measurement, and its targets. */
export function table({ title, figures, outcomes, targets }: Comparison): string {
  const header = ["", ...figures.flatMap((figure) => [heads(figure), "lowest – highest", "to yardstick"])];
  const lines = outcomes.map((outcome) => [outcome.name, ...figures.flatMap((figure, i) => cells(figure, outcome, i))]);
  const widths = header.map((head, column) =>
    Math.max(head.length, ...lines.map((line) => (line[column] ?? "").length)),
  );
  const isEmpty = header.map((_, column) => column % 3 === 0 && column > 0 && lines.every((line) => !line[column]));
  const drawn = [header, ...lines].map((line, row) => {
    const trouble = row === 0 ? undefined : outcomes[row - 1]?.trouble;
    if (trouble !== undefined) return `${(line[0] ?? "").padEnd(widths[0] ?? 0)}  ${trouble}`;
    return line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .filter((_, column) => isEmpty[column] !== true)
      .join("  ")
      .trimEnd();
  });
  return [`\n${title}`, ...drawn.map((line) => `  ${line}`), ...targets.map((one) => `  ${sentence(one)}`)].join("\n");
}

/** One line about a target. */
export function sentence({ what, bound, measured, reached }: Target): string {
  return `${verdict(reached).padEnd(8)} ${what}: ${measured}, target ${bound}`;
}

/** The verdict in one word. "open" means undecided. */
export function verdict(reached: boolean | null): string {
  if (reached === null) return "open";
  return reached ? "reached" : "MISSED";
}

/** Formats a number with the digits of its figure. */
export function shown({ digits }: Figure, value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function heads({ name, unit, atLeast }: Figure): string {
  return `${name}${unit === "" ? "" : `, ${unit}`}${atLeast === true ? " (at least)" : ""}`;
}

function cells(figure: Figure, { summaries }: Outcome, i: number): readonly string[] {
  const summary: Summary | undefined = summaries[i];
  if (summary === undefined) return ["", "", ""];
  const { median, lowest, highest, ratio } = summary;
  return [
    shown(figure, median),
    `${shown(figure, lowest)} – ${shown(figure, highest)}`,
    ratio === undefined ? "" : `${ratio.toPrecision(3)} ×`,
  ];
}
