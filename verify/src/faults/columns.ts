/** What the columns of the matrix that have several servers differ in, and what clients there are told of failovers. */
import type { Cell, Column } from "./cell.js";
import type { Grace, Releases } from "./subject.js";

/** Independent servers, of which a majority decides. */
export function isQuorum(column: Column): boolean {
  return column === "Q3" || column === "Q5";
}

/** Masters with replicas, one of which may take over. */
export function hasReplicas(column: Column): boolean {
  return column === "T" || column === "C";
}

/** The rows that are there again with releases in the background say so at the end of their names. */
export function releasesOf({ row }: Pick<Cell, "row">): Releases {
  return row.endsWith("-background") ? "background" : "awaited";
}

/**
 * The rows about memory loss and promotion are there twice or more: with the grace off, with what the reference says, and
 * with it on, with what docs/safety.md promises. They differ by the end of their names. A quorum has no choice: its servers
 * always stay out when they forgot, but where a run has to show why.
 */
export function graceOf({ row, column, expectation }: Pick<Cell, "row" | "column" | "expectation">): Grace {
  // The control that outwits it.
  if (row === "K5") return "strict";
  if (isQuorum(column)) return expectation === "broken" ? "off" : "strict";
  if (row.endsWith("-strict")) return "strict";
  return row.endsWith("-grace") ? "auto" : "off";
}
