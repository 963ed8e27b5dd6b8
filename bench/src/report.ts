/** What a run looks like on paper. */
import type { Adapter } from "./adapters/adapter.js";
import type { Comparison, Row } from "./compare.js";
import type { Machine } from "./machine.js";

/** One line about the machine and one about versions. */
export function heading(machine: Machine, adapters: readonly Adapter[], autoPipelining: boolean): string {
  const versions = adapters.filter(({ version }) => version !== "").map(({ name, version }) => `${name} ${version}`);
  const client = `ioredis ${machine.ioredis} (auto-pipelining ${autoPipelining ? "on" : "off"})`;
  return [
    `${machine.cores} cores, ${machine.cpu}, load ${machine.load.toFixed(1)}; server and callers on this machine`,
    `Node ${machine.node}, Redis ${machine.redis}, ${[client, ...versions].join(", ")}`,
  ].join("\n");
}

/** The table of one measurement. */
export function table(comparison: Comparison, yardstick: string): string {
  const lines = comparison.rows.map((row) => [
    row.contestant,
    row.name,
    shown(row, row.median),
    row.unit,
    `${shown(row, row.lowest)} – ${shown(row, row.highest)}`,
    row.ratio === undefined ? "" : `${row.ratio.toFixed(2)} ×`,
  ]);
  const header = ["", "", "median", "", "lowest – highest", `to ${yardstick}`];
  const widths = header.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const drawn = [header, ...lines].map((line) =>
    line
      .map((cell, column) => (isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
  return [`\n${comparison.title}`, ...drawn.map((line) => `  ${line}`)].join("\n");
}

function isNumber(column: number): boolean {
  return column === 2 || column >= 4;
}

function shown({ digits }: Row, value: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
