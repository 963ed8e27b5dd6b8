/** Shared parts of all pictures: sheet, text, numbers, and colors that also color-blind readers can distinguish. */

/** Colors by meaning. */
export const COLOURS: Readonly<Record<string, string>> = Object.freeze({
  own: "#0b6e4f",
  raw: "#8a8a8a",
  yardstick: "#8a8a8a",
  peer: "#d98e04",
  first: "#0b6e4f",
  second: "#b5179e",
  third: "#1d4ed8",
  fourth: "#d98e04",
  line: "#d0d0d0",
  ink: "#222222",
});

/** A whole picture. Its background is white, so that it is legible on a dark page. */
export function sheet(width: number, height: number, title: string, parts: readonly string[]): string {
  const head =
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    `role="img" font-family="system-ui, sans-serif" font-size="12" fill="${COLOURS.ink}">`;
  return [
    head,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(12, 20, title, { weight: "bold" }),
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** A line of text. */
export function text(
  x: number,
  y: number,
  words: string,
  {
    anchor = "start",
    weight = "normal",
  }: { readonly anchor?: "start" | "middle" | "end"; readonly weight?: string } = {},
): string {
  return `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}" font-weight="${weight}">${escaped(words)}</text>`;
}

/** A straight line. */
export function line(x1: number, y1: number, x2: number, y2: number, colour: string | undefined, width = 1): string {
  return `<path d="M${short(x1)} ${short(y1)}L${short(x2)} ${short(y2)}" stroke="${colour}" stroke-width="${width}" fill="none"/>`;
}

/** Rounds a coordinate to a tenth of a pixel. */
export function short(value: number): string {
  return `${Math.round(value * 10) / 10}`;
}

/** A short form of a number for an axis, such as 12, 12.0 k or 3.40 M. */
export function brief(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value >= 999_500) return `${(value / 1e6).toPrecision(3)} M`;
  if (value >= 10_000) return `${(value / 1e3).toPrecision(3)} k`;
  return value >= 100 ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : `${Number(value.toPrecision(3))}`;
}

/** Powers of ten that enclose the values, for a logarithmic axis. */
export function decades(values: readonly number[]): readonly number[] {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (positive.length === 0) return [1, 10];
  const first = Math.floor(Math.log10(Math.min(...positive)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...positive))));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
