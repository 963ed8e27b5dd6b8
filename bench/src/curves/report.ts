import type { Machine } from "../machine.js";

/** What `--curves` measured. */
export interface CurveReport {
  readonly curves: readonly MeasuredCurve[];
}

/** Under what it was measured: each may be measured by itself. */
export interface CurveConditions {
  readonly machine: Machine;
  readonly autoPipelining: boolean;
  readonly leaseMs: number;
  readonly repetitions: number;
}

/** A curve, and under what it was measured. */
export interface MeasuredCurve extends Curve {
  readonly conditions: CurveConditions;
}

/** How something grows with something else. */
export interface Curve {
  readonly name: string;
  readonly title: string;
  /** Names of the columns of the table; `y` is that of the picture. */
  readonly figures: { readonly x: string; readonly y: string; readonly columns: readonly string[] };
  readonly lines: readonly CurveLine[];
  /** Where each line bends and what was used up there, from what was measured. */
  readonly sentences: readonly string[];
}

/** One line of a curve. */
export interface CurveLine {
  readonly name: string;
  readonly points: readonly CurvePoint[];
}

/** One point: what is drawn, and what stands in the table. */
export interface CurvePoint {
  readonly x: number;
  readonly y: number;
  readonly cells: readonly string[];
}

/** A curve on paper. */
export function curveText({ title, figures, lines, sentences }: Curve): string {
  const points = lines.flatMap(({ name, points: own }) =>
    own.map(({ x, cells }) => [name, x.toLocaleString("en-US"), ...cells]),
  );
  const header = ["", figures.x, ...figures.columns];
  const widths = header.map((head, i) => Math.max(head.length, ...points.map((cells) => (cells[i] ?? "").length)));
  const drawn = [header, ...points].map((cells) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  "),
  );
  return [`\n${title}`, ...drawn.map((line) => `  ${line}`), ...sentences.map((words) => `  ${words}`)].join("\n");
}
