/**
 * Draws a history: a lane for each process, time from left to right, violations in red.
 *
 * The result is a self-contained SVG string. Equal histories give equal pictures, so pictures can be compared. A picture
 * shows one time window of one lock; to show more, draw more pictures.
 */
import { groupBy, type History } from "../history/history.js";
import { leasesOf } from "../history/leases.js";
import type { HistoryRecord, Operation } from "../history/records.js";
import { drawEffects, drawFaults, drawGrid, drawLegend } from "./frame.js";
import { type DrawnLane, drawLane, type Lane } from "./lane.js";
import { scale } from "./layout.js";
import { STYLE } from "./style.js";
import { element, escapeXml, fit, label } from "./svg.js";

/** What to draw. */
export interface PictureOptions {
  readonly title: string;
  /** Absent draws all locks. */
  readonly lockName?: string;
  /** A violation: its message, and the records to show in red. */
  readonly violation?: { readonly message: string; readonly records: readonly HistoryRecord[] };
  /** The operations in the order that the checker found. Each shows its position. */
  readonly order?: readonly Operation[];
  /** The start of the window. @default the first call, or shortly before the violation */
  readonly fromMs?: number;
  /** The end of the window. @default the last return, or shortly after the violation */
  readonly untilMs?: number;
}

const WIDTH = 1200;
const LEFT = 130;
const RIGHT = WIDTH - 20;
const MESSAGE_LINE = 160;
const FAULT_ROW = 18;

/** Returns the picture as the content of an SVG file. */
export function picture(history: History, options: PictureOptions): string {
  const { title, lockName, violation, order = [] } = options;
  const isShown = (record: { readonly lockName: string }): boolean =>
    lockName === undefined || record.lockName === lockName;
  const operations = history.operations.filter(isShown).sort((a, b) => a.callMs - b.callMs || a.id - b.id);
  const window = scale(...windowOf(operations, options), LEFT, RIGHT);
  const red = new Set(violation?.records);
  const places = new Map(order.map(({ id }, index) => [id, index + 1]));
  const leases = leasesOf(history).filter(({ acquire }) => isShown(acquire));

  const lines = wrap(violation?.message ?? "", MESSAGE_LINE);
  const axis = 54 + lines.length * 16;
  let top = axis + 10;
  const lanes: DrawnLane[] = [];
  const byProcess = groupBy(operations, ({ process }) => process);
  for (const [index, [process, own]] of [...byProcess].entries()) {
    const lane: Lane = {
      process,
      operations: own.filter(({ callMs, returnMs }) => window.shows(callMs, returnMs)),
      leases: leases.filter(({ acquire }) => acquire.process === process),
      lost: history.lost.filter((record) => isShown(record) && record.process === process),
      held: history.held.filter((record) => isShown(record) && record.process === process),
    };
    const drawn = drawLane(lane, { window, top, red, places, isStriped: index % 2 === 1, width: WIDTH });
    lanes.push(drawn);
    top += drawn.height;
  }
  const effects = drawEffects(history.effects.filter(isShown), { window, top, red, width: WIDTH });
  const bottom = top + effects.height;
  const legend = bottom + FAULT_ROW + 20;
  const height = legend + 14;

  return element(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img" },
    element("title", {}, escapeXml(title)),
    element("style", {}, STYLE),
    element("rect", { width: WIDTH, height, fill: "#fff" }),
    label(fit(title, WIDTH - 40), { x: 20, y: 26, class: "title" }),
    ...lines.map((line, index) => label(line, { x: 20, y: 46 + index * 16, class: "message" })),
    ...lanes.map(({ ground }) => ground),
    drawGrid(window, axis, bottom),
    drawFaults(history.faults, window, axis, bottom, red),
    ...lanes.map(({ svg }) => svg),
    effects.svg,
    drawLegend(legend),
  );
}

/** The requested window; by default the violation with a quarter of its length on each side, or everything. */
function windowOf(operations: readonly Operation[], options: PictureOptions): [fromMs: number, untilMs: number] {
  const shown = (options.violation?.records ?? []).filter((record) => record.type === "operation");
  const instants = (shown.length > 0 ? shown : operations).flatMap(({ callMs, returnMs, validUntilMs }) => [
    callMs,
    returnMs,
    validUntilMs ?? callMs,
  ]);
  const finite = instants.filter(Number.isFinite);
  const firstMs = finite.reduce((least, atMs) => Math.min(least, atMs), finite[0] ?? 0);
  const lastMs = finite.reduce((most, atMs) => Math.max(most, atMs), finite[0] ?? 1);
  const marginMs = (lastMs - firstMs || 1) * (shown.length > 0 ? 0.25 : 0.02);
  return [options.fromMs ?? firstMs - marginMs, options.untilMs ?? lastMs + marginMs];
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter((part) => part !== "")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(fit(word, width * 6.7));
  }
  return lines;
}
