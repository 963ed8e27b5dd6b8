/** The reports of several servers side by side: a column for each server, a row for each contestant. */
import { type Report, serverOf, shown } from "./report.js";

const NONE = "–";

/**
 * Returns a table for the first figure of each measurement: the median and, in brackets, its ratio to the raw lock on the
 * same server. Each server was measured in a separate run, so compare the ratios.
 *
 * @param reports  of the same measurements and contestants, one for each server
 */
export function sideBySide(reports: readonly Report[]): string {
  const [first] = reports;
  if (first === undefined) return "";
  const tables = first.comparisons.map(({ name, title, figures: [figure], outcomes }) => {
    const cellOf = ({ comparisons }: Report, contestant: string): string => {
      const comparison = comparisons.find((one) => one.name === name);
      const summary = comparison?.outcomes.find((one) => one.name === contestant)?.summaries[0];
      if (figure === undefined || summary === undefined) return NONE;
      const { median, ratio } = summary;
      // JSON has no NaN, so a value that was not measured is null.
      const number = shown(figure, median ?? Number.NaN);
      return typeof ratio === "number" ? `${number} (${ratio.toPrecision(3)} ×)` : number;
    };
    const unit = figure === undefined || figure.unit === "" ? "" : `, ${figure.unit}`;
    const lines = [
      [`${figure?.name ?? ""}${unit}`, ...reports.map(({ machine }) => serverOf(machine))],
      ...outcomes.map((outcome) => [outcome.name, ...reports.map((report) => cellOf(report, outcome.name))]),
    ];
    return `\n${title}\n${aligned(lines)}`;
  });
  const missed = reports.map(({ machine, comparisons }) => {
    const targets = comparisons.flatMap((comparison) => comparison.targets);
    const reached = targets.filter((target) => target.reached === true).length;
    return `${serverOf(machine)}: ${reached} of ${targets.length} targets reached`;
  });
  return [...tables, "", ...missed].join("\n");
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  "),
    )
    .map((line) => `  ${line}`)
    .join("\n");
}
