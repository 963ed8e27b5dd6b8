/** Properties of the matrix columns with several servers, and the options of their clients. */
import type { Cell, Column } from "./cell.js";
import type { Grace, Releases } from "./subject.js";

/** Independent servers that decide by majority. */
export function isQuorum(column: Column): boolean {
  return column === "Q3" || column === "Q5";
}

/** Masters with replicas, which may be promoted. */
export function hasReplicas(column: Column): boolean {
  return column === "T" || column === "C";
}

/** The release mode of a row. Rows that repeat another row with a different release mode have a suffix. */
export function releasesOf({ row }: Pick<Cell, "row">): Releases {
  if (row.endsWith("-retained")) return "retained";
  return row.endsWith("-background") ? "background" : "awaited";
}

/**
 * The failover grace of a row. The rows about memory loss and promotion exist in variants, distinguished by the
 * suffix of their names: with the grace off, as in the reference matrix, and with it on, as docs/safety.md describes.
 * In a quorum, servers that have lost their memory always stay out, except in rows that show why that is necessary.
 */
export function graceOf({ row, column, expectation }: Pick<Cell, "row" | "column" | "expectation">): Grace {
  // The control in which a clock step defeats the grace.
  if (row === "K5") return "strict";
  if (isQuorum(column)) return expectation === "broken" ? "off" : "strict";
  if (row.endsWith("-strict")) return "strict";
  return row.endsWith("-grace") ? "auto" : "off";
}
