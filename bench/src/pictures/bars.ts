import type { Comparison } from "../compare.js";
import type { Figure } from "../measurements/entry.js";
import { shown } from "../report.js";
import { brief, COLOURS, decades, line, sheet, short, text } from "./svg.js";

const WIDTH = 760;
const LEFT = 160;
const RIGHT = 130;
const ROW = 22;
const TOP = 68;
/** If the largest value is more than this many times the smallest median, short bars would look alike on a linear axis. */
const TOO_WIDE = 30;

/** Every picture of a measurement, by file name. */
export function pictures(comparison: Comparison): ReadonlyMap<string, string> {
  const drawn = comparison.figures.flatMap((figure, i): [string, string][] => {
    const picture = i === 0 || figure.isDrawn === true ? bars(comparison, i) : undefined;
    return picture === undefined ? [] : [[fileOf(comparison.name, figure, i), picture]];
  });
  return new Map(drawn);
}

function fileOf(measurement: string, { name }: Figure, i: number): string {
  return i === 0 ? `${measurement}.svg` : `${measurement}-${name.toLowerCase().replaceAll(/[^a-z]+/g, "-")}.svg`;
}

/** Draws one figure of a measurement: a bar for each entry, with its range as a line. Undefined if nothing was measured. */
function bars({ title, figures, outcomes }: Comparison, index: number): string | undefined {
  const figure = figures[index];
  const measured = outcomes.flatMap(({ name, role, summaries }) => {
    const summary = summaries[index];
    // JSON has no NaN, so a value that was not measured is null.
    return summary === undefined || !Number.isFinite(summary.median) ? [] : [{ name, role, ...summary }];
  });
  if (figure === undefined || measured.length === 0) return undefined;
  const values = measured.flatMap(({ median, lowest, highest }) => [median, lowest, highest]);
  const x = axis(values, Math.max(...values) > TOO_WIDE * Math.min(...measured.map(({ median }) => median)));
  const height = TOP + measured.length * ROW + 16;
  const rows = measured.flatMap(({ name, role, median, lowest, highest }, i) => {
    const y = TOP + i * ROW;
    const middle = y + ROW / 2;
    return [
      text(LEFT - 8, middle + 4, name, { anchor: "end" }),
      `<rect x="${LEFT}" y="${short(y + 3)}" width="${short(Math.max(1, x.at(median) - LEFT))}" height="${ROW - 6}" fill="${COLOURS[role]}"/>`,
      line(x.at(lowest), middle, x.at(highest), middle, COLOURS.ink),
      text(WIDTH - RIGHT + 12, middle + 4, `${shown(figure, median)}`),
    ];
  });
  const grid = x.ticks.flatMap((tick) => [
    line(x.at(tick), TOP - 4, x.at(tick), height - 12, COLOURS.line),
    text(x.at(tick), TOP - 8, brief(tick), { anchor: "middle" }),
  ]);
  const better = figure.better === "more" ? "longer is better" : "shorter is better";
  const words = `${figure.name}${figure.unit === "" ? "" : `, ${figure.unit}`}: ${better}${x.isEven ? "" : "; axis by powers of ten"}`;
  return sheet(WIDTH, height, title, [text(12, 38, words), ...grid, ...rows]);
}

interface Axis {
  readonly isEven: boolean;
  readonly ticks: readonly number[];
  at(value: number): number;
}

function axis(values: readonly number[], isWide: boolean): Axis {
  const span = WIDTH - LEFT - RIGHT;
  if (isWide) {
    const ticks = decades(values);
    const [first = 1] = ticks;
    const last = ticks.at(-1) ?? 10;
    const at = (value: number): number => {
      const share = Math.log(Math.max(value, first) / first) / Math.log(last / first);
      return LEFT + span * share;
    };
    return { isEven: false, ticks, at };
  }
  const most = Math.max(...values, Number.MIN_VALUE);
  const step = 10 ** Math.floor(Math.log10(most)) / (most / 10 ** Math.floor(Math.log10(most)) < 3 ? 2 : 1);
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  return { isEven: true, ticks, at: (value) => LEFT + (span * value) / most };
}
