/** Fits lines into the width of a terminal. */

import { plain } from "@holdfast/console/text";
import type { Column } from "../frame/output.js";

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Extended_Pictographic}/u;
const COMBINING = /[\p{Mn}\p{Me}]/u;
/**
 * The only control sequences in a line are colors, which take up no cells. All other control characters have
 * already been escaped.
 */
const ESC = "\x1b";
const PIECES = new RegExp(`${ESC}\\[[\\d;]*m|.`, "gsu");
const RESET = `${ESC}[0m`;

/** The largest share of the terminal's width that each of these columns may take. */
const SHARES: Readonly<Record<string, number>> = { NAME: 0.4, HOLDER: 0.25 };

/** Shortens long cells with `…`, so that one long name leaves room for the other columns. */
export function fitted<Row>(columns: readonly Column<Row>[], width: number | undefined): readonly Column<Row>[] {
  if (width === undefined) return columns;
  return columns.map((column) => {
    const share = SHARES[column.heading];
    if (share === undefined) return column;
    return {
      ...column,
      cell(row) {
        const text = column.cell(row);
        return text === undefined ? undefined : clip(plain(text), Math.max(8, Math.floor(width * share)));
      },
    };
  });
}

/** Cuts the line to `cells` cells. The last cell is `…` if anything was cut off, and the colors are reset after it. */
export function clip(line: string, cells: number): string {
  // Nearly every line is plain ASCII and fits, so handle that case first.
  if (line.length <= cells && /^[ -~]*$/.test(line)) return line;
  let kept = "";
  let used = 0;
  let beforeLast = "";
  let isColoured = false;
  for (const [piece] of line.matchAll(PIECES)) {
    if (piece.startsWith("\x1b")) {
      isColoured = true;
      kept += piece;
      continue;
    }
    const width = COMBINING.test(piece) ? 0 : WIDE.test(piece) ? 2 : 1;
    if (used + width > cells) return `${beforeLast}${cells < 1 ? "" : "…"}${isColoured ? RESET : ""}`;
    kept += piece;
    used += width;
    // Reserve one cell for the `…` until the whole line is known to fit.
    if (used <= cells - 1) beforeLast = kept;
  }
  return kept;
}
