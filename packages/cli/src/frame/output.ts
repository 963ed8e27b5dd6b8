/** The output of verbs: tables for people, JSON for programs. */
import { plain, redact } from "@holdfast/console/text";
import type { Streams } from "./streams.js";

/** The color or weight of a word. Color is never the only carrier of information. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

const SGR: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

/** Colors a string, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

/** Returns the paint function for one stream: color only on a terminal, unless `--color` says otherwise. */
export function paintFor(stream: { readonly isTTY?: boolean }, color: "auto" | "always" | "never"): Paint {
  const isOn = color === "always" || (color === "auto" && stream.isTTY === true);
  return (style, text) => (isOn ? `\x1b[${SGR[style][0]}m${text}\x1b[${SGR[style][1]}m` : text);
}

/** One column of a table. */
export interface Column<Row> {
  readonly heading: string;
  /** Undefined is printed as `-`. */
  readonly cell: (row: Row) => string | undefined;
  readonly style?: (row: Row) => Style | undefined;
}

/**
 * Formats rows as aligned text without borders. Every line ends with a newline. Returns an empty string if there are
 * neither rows nor headings.
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { hasHeadings = true, paint = (_, text) => text }: { hasHeadings?: boolean; paint?: Paint } = {},
): string {
  const cells = rows.map((row) => columns.map(({ cell }) => plain(cell(row) ?? "-") || "-"));
  const lines = hasHeadings ? [columns.map(({ heading }) => heading), ...cells] : cells;
  const widths = columns.map((_, at) => Math.max(0, ...lines.map((line) => widthOf(line[at] ?? ""))));
  return lines
    .map((line, index) => {
      const row = rows[hasHeadings ? index - 1 : index];
      const padded = line.map((text, at) => {
        const padding = at === columns.length - 1 ? "" : " ".repeat((widths[at] ?? 0) - widthOf(text));
        const style = row === undefined ? "dim" : columns[at]?.style?.(row);
        return `${style === undefined ? text : paint(style, text)}${padding}`;
      });
      return `${padded.join("  ").trimEnd()}\n`;
    })
    .join("");
}

/** The approximate width in terminal columns: wide East Asian characters and emoji take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return width;
}

/** One JSON document or line with `"v": 1`, with passwords removed. */
export function jsonLine(document: object): string {
  return `${redact(JSON.stringify({ v: 1, ...document }))}\n`;
}

/** Prints one line for people on stderr, with the prefix `holdfast:`. Prints nothing with `--quiet`. */
export function notify({ stderr }: Streams, { isQuiet }: { readonly isQuiet: boolean }, message: string): void {
  if (!isQuiet) stderr.write(`holdfast: ${redact(message)}\n`);
}
