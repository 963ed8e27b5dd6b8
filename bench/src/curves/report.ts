import type { Machine } from "../machine.js";

/** What `--curves` measured. */
export interface CurveReport {
  readonly curves: readonly MeasuredCurve[];
}

/** The conditions of a curve. Each curve has its own, because curves can be measured separately. */
export interface CurveConditions {
  readonly machine: Machine;
  readonly autoPipelining: boolean;
  readonly leaseMs: number;
  readonly repetitions: number;
}

/** A curve and the conditions that it was measured under. */
export interface MeasuredCurve extends Curve {
  readonly conditions: CurveConditions;
}

/** How one quantity depends on another. */
export interface Curve {
  readonly name: string;
  readonly title: string;
  /** Names of the axes of the picture, and of the columns of the table. */
  readonly figures: { readonly x: string; readonly y: string; readonly columns: readonly string[] };
  readonly lines: readonly CurveLine[];
  /** Where each line bends, and which resource is the limit there. */
  readonly sentences: readonly string[];
}

/** One line of a curve. */
export interface CurveLine {
  readonly name: string;
  readonly points: readonly CurvePoint[];
}

/** One point of the picture, and its cells in the table. */
export interface CurvePoint {
  readonly x: number;
  readonly y: number;
  readonly cells: readonly string[];
}

/** A curve as text. */
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
