/** What thousands of simultaneous timeouts cost, on paper. */
import type { TimeoutsLine } from "./measure.js";

/** A stall of this length is the most that is accepted. */
export const MOST_STALL_MS = 100;

const HEADS = ["callers", "stall, ms", "longest", "script calls", "last error, ms", "told who holds", "leases lost"];

/** Whether a line is within what is accepted. */
export function isReached({ stallMs, leasesLost }: TimeoutsLine): boolean {
  return stallMs < MOST_STALL_MS && leasesLost === 0;
}

/** A table on paper. */
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
    "  stall: how late the event loop was at most after the deadline, median and longest of the runs",
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
