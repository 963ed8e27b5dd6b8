/** Draws a dot for each section, by time and caller, so that fairness and idle times are visible. */
import type { Section } from "../measurements/entry.js";
import { COLOURS, line, sheet, short, text } from "./svg.js";

const WIDTH = 760;
const LEFT = 110;
const RIGHT = 28;
const PANEL = 130;
const PANEL_GAP = 34;
const TOP = 60;
const TICKS = 5;

/** One contestant in the picture. */
export interface Panel {
  readonly name: string;
  readonly sections: readonly Section[];
}

/** Each panel shows the last `shownMs` of its run. Each process has its own color. */
export function timeline(title: string, panels: readonly Panel[], callers: number, shownMs: number): string {
  const height = TOP + panels.length * (PANEL + PANEL_GAP);
  const parts = panels.flatMap((panel, i) => drawn(panel, TOP + i * (PANEL + PANEL_GAP), callers, shownMs));
  const words = `a dot for each section; upwards the callers, ${callers} in each process; sideways ${shownMs} ms`;
  return sheet(WIDTH, height, title, [text(12, 38, words), ...parts]);
}

function drawn({ name, sections }: Panel, top: number, callers: number, shownMs: number): readonly string[] {
  const untilMs = sections.reduce((last, { startedAtMs }) => Math.max(last, startedAtMs), 0);
  const fromMs = untilMs - shownMs;
  const processes = [...new Set(sections.map(({ process }) => process))].toSorted((a, b) => a - b);
  const x = (atMs: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * (atMs - fromMs)) / shownMs;
  const y = (process: number, caller: number): number =>
    top + PANEL - (PANEL * (process * callers + caller + 0.5)) / (callers * Math.max(2, processes.length));
  const inView = sections.filter(({ startedAtMs }) => startedAtMs >= fromMs);
  const dots = processes.map((process) => {
    const colour = process % 2 === 0 ? COLOURS.first : COLOURS.second;
    const path = inView
      .filter((section) => section.process === process)
      .map(({ caller, startedAtMs }) => `M${short(x(startedAtMs))} ${short(y(process, caller))}h2`);
    return `<path d="${path.join("")}" stroke="${colour}" stroke-width="2" fill="none"/>`;
  });
  const grid = Array.from({ length: TICKS + 1 }, (_, i) => fromMs + (shownMs * i) / TICKS).flatMap((atMs) => [
    line(x(atMs), top, x(atMs), top + PANEL, COLOURS.line),
    text(x(atMs), top + PANEL + 14, `${short(atMs - fromMs)} ms`, { anchor: "middle" }),
  ]);
  return [
    ...grid,
    line(LEFT, top + PANEL / 2, WIDTH - RIGHT, top + PANEL / 2, COLOURS.line),
    ...dots,
    text(LEFT - 8, top + PANEL / 2 - 4, name, { anchor: "end", weight: "bold" }),
    text(LEFT - 8, top + PANEL / 2 + 12, `sections: ${inView.length}`, { anchor: "end" }),
  ];
}
