/** What thousands of simultaneous timeouts cost, as a table. */
import type { TimeoutsLine } from "./measure.js";

/** A stall must be shorter than this. */
export const MOST_STALL_MS = 100;

const HEADS = ["callers", "stall, ms", "longest", "script calls", "last error, ms", "holder known", "leases lost"];

/** Whether a line reaches the targets. */
export function isReached({ stallMs, leasesLost }: TimeoutsLine): boolean {
  return stallMs < MOST_STALL_MS && leasesLost === 0;
}

/** The table as text. */
export function timeoutsText(lines: readonly TimeoutsLine[]): string {
  const rows = [
    ["", ...HEADS],
    ...lines.map((line) => [
      line.kind,
      ...[
        line.callers,
        line.stallMs,
        line.longestStallMs,
        line.scriptCalls,
        line.lastMs,
        line.told,
        line.leasesLost,
      ].map((number) => Math.round(number).toLocaleString("en-US")),
    ]),
  ];
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((cells) => (cells[i] ?? "").length))) ?? [];
  return [
    "\nall callers of one process time out in the same millisecond",
    "  stall: the longest delay of the event loop after the deadline, median and maximum of the runs",
    ...rows.map(
      (cells) =>
        `  ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ")}`,
    ),
    ...lines.map(
      (line) =>
        `${isReached(line) ? "reached" : "MISSED "}  ${line.kind}: a stall below ${MOST_STALL_MS} ms, and no other lease lost`,
    ),
  ].join("\n");
}
