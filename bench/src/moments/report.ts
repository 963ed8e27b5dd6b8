/** The steps of a hand-over as a table. */
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

/** The title of the table. */
export const MOMENTS_TITLE = "a hand-over, moment by moment: 4 processes × 8 callers, sections of 1 ms";
/** The meaning of its numbers. */
export const MOMENTS_UNIT =
  "µs since the section ended, or since the message was due; p50 of the hand-overs between processes that could be traced. The reply goes to the process whose section ended, and the message to the next process. Neither waits for the other";
/** The purpose of the rows without a lock. */
export const MOMENTS_RHYTHMS =
  "the `publish` rows send plain messages around a ring of as many processes: every ms, like the yardstick of the gap, and every 8 ms, as often as a lock moves to another process";

const WORDS: Readonly<Record<Moment, string>> = {
  written: "first write",
  answered: "its reply",
  told: "message at the next process",
  started: "next section begins",
};

/** The column heads of `momentCells`. */
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

/** The table as text. */
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
