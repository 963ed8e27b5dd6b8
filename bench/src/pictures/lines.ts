import { brief, COLOURS, decades, line, sheet, short, text } from "./svg.js";

const WIDTH = 760;
const HEIGHT = 340;
const LEFT = 80;
const RIGHT = 170;
const TOP = 60;
const BOTTOM = 44;
const PALETTE = ["first", "second", "third", "fourth"];

/** One line of a picture. */
export interface Line {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Draws lines over a common axis. Both axes are logarithmic, because sizes grow by factors. */
export function lines(title: string, xTitle: string, yTitle: string, given: readonly Line[]): string {
  // A logarithmic axis has no zero. The table shows it.
  const all = given.map(({ name, points }) => ({ name, points: points.filter(({ y }) => y > 0) }));
  const xs = [...new Set(all.flatMap(({ points }) => points.map(({ x }) => x)))].toSorted((a, b) => a - b);
  const ys = all.flatMap(({ points }) => points.map(({ y }) => y));
  const ticks = decades(ys);
  const first = ticks[0] ?? 1;
  const last = ticks.at(-1) ?? 10;
  const least = xs[0] ?? 1;
  const most = Math.max(xs.at(-1) ?? 10, least * 1.0001);
  const x = (value: number): number =>
    LEFT + ((WIDTH - LEFT - RIGHT) * Math.log(value / least)) / Math.log(most / least);
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.log(Math.max(value, first) / first)) / Math.log(last / first);
  const grid = [
    ...ticks.flatMap((tick) => [
      line(LEFT, y(tick), WIDTH - RIGHT, y(tick), COLOURS.line),
      text(LEFT - 8, y(tick) + 4, brief(tick), { anchor: "end" }),
    ]),
    ...xs.map((tick) => text(x(tick), HEIGHT - BOTTOM + 16, brief(tick), { anchor: "middle" })),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, xTitle, { anchor: "middle" }),
  ];
  const drawn = all.flatMap(({ name, points }, i) => {
    const colour = COLOURS[PALETTE[i % PALETTE.length] ?? ""];
    const path = points.map((point, at) => `${at === 0 ? "M" : "L"}${short(x(point.x))} ${short(y(point.y))}`).join("");
    return [
      `<path d="${path}" stroke="${colour}" stroke-width="2" fill="none"/>`,
      ...points.map((point) => `<circle cx="${short(x(point.x))}" cy="${short(y(point.y))}" r="3" fill="${colour}"/>`),
      `<rect x="${WIDTH - RIGHT + 16}" y="${TOP + i * 20}" width="10" height="10" fill="${colour}"/>`,
      text(WIDTH - RIGHT + 32, TOP + 9 + i * 20, name),
    ];
  });
  return sheet(WIDTH, HEIGHT, title, [text(12, 38, yTitle), ...grid, ...drawn]);
}
