import { describe, expect, it } from "vitest";
import { INJECTIONS, injectionOf } from "../src/faults/injections/table.js";
import { BUILT_CELLS, MATRIX } from "../src/faults/matrix.js";

describe("the faults of a single server", () => {
  it("are there for every row of the matrix that has a cell on it, but for the one that is simulated", () => {
    const rows = new Set(BUILT_CELLS.map(({ row }) => row));
    expect([...rows].filter((row) => injectionOf(row) === undefined)).toEqual(["J07"]);
  });

  it("belong to a row each, and to one only", () => {
    const rows = INJECTIONS.map(({ row }) => row);
    expect(new Set(rows).size).toBe(rows.length);
    expect(rows.filter((row) => !MATRIX.some((line) => line.row === row))).toEqual([]);
  });

  it("leave clients idle where two holders are directed", () => {
    const broken = BUILT_CELLS.filter(({ expectation }) => expectation === "broken").map(({ row }) => row);
    const busy = broken.filter((row) => injectionOf(row)?.work !== undefined);
    // Promised in one column and not in another; it takes its own care.
    expect([...new Set(busy)]).toEqual(["J27"]);
  });
});
