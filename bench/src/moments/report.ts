/** A hand-over, moment by moment, on paper. */
import type { Machine } from "../machine.js";
import { MOMENTS, type Moment } from "./hand-over.js";
import type { MomentsLine } from "./measure.js";

/** What `--moments` measured. */
export interface MomentsReport {
  readonly machine: Machine;
  readonly autoPipelining: boolean;
  readonly leaseMs: number;
  readonly lines: readonly MomentsLine[];
}

/** What the table is of. */
export const MOMENTS_TITLE = "a hand-over, moment by moment: 4 processes × 8 callers, sections of 1 ms";
/** What its numbers are. */
export const MOMENTS_UNIT =
  "µs since the end of the section, or since the message was to be sent; p50 of the hand-overs between processes that could be followed. The reply goes to the process whose section ended, and the message to the next process. Neither waits for the other";
/** What the rows without a lock are for. */
export const MOMENTS_RHYTHMS =
  "the rows `publish` send bare messages round the same number of processes: every ms, like the yardstick of the gap, and every 8 ms, as often as a lock goes from one process to another";

const WORDS: Readonly<Record<Moment, string>> = {
  written: "first write",
  answered: "its reply",
  told: "message at the next process",
  started: "next section begins",
};

/** The heads over `momentCells`. */
export const MOMENT_HEADS: readonly string[] = [
  "hand-overs",
  "left out",
  "one in, ms",
  ...MOMENTS.map((moment) => WORDS[moment]),
  "p90",
];

/** The cells of a line. */
export function momentCells({ handOvers, leftOut, everyMs, us, p90 }: MomentsLine): readonly string[] {
  const whole = (number: number): string => Math.round(number).toLocaleString("en-US");
  return [
    whole(handOvers),
    whole(leftOut),
    everyMs.toFixed(1),
    ...MOMENTS.map((moment) => whole(us[moment])),
    whole(p90),
  ];
}

/** A table on paper. */
export function momentsText(lines: readonly MomentsLine[]): string {
  const drawn = [["", ...MOMENT_HEADS], ...lines.map((line) => [line.name, ...momentCells(line)])];
  const widths = MOMENT_HEADS.map((head, i) =>
    Math.max(head.length, ...drawn.map((cells) => (cells[i + 1] ?? "").length)),
  );
  const first = Math.max(...drawn.map(([name = ""]) => name.length));
  const rows = drawn.map(([name = "", ...cells]) =>
    [name.padEnd(first), ...cells.map((cell, i) => cell.padStart(widths[i] ?? 0))].join("  "),
  );
  return [`\n${MOMENTS_TITLE}`, `  ${MOMENTS_UNIT}`, ...rows.map((row) => `  ${row}`)].join("\n");
}
