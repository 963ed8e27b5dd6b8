import { describe, expect, it } from "vitest";
import { INJECTIONS, injectionOf } from "../src/faults/injections/table.js";
import { CELLS, isLiveness, ROWS, SINGLE_CELLS } from "../src/faults/matrix.js";

describe("the faults", () => {
  it("exist for every row of the matrix with a cell, except the simulated row", () => {
    // The rows about liveness have their own scenarios.
    const none = ROWS.flatMap(({ cells }) => cells)
      .filter((cell) => !isLiveness(cell))
      .filter(({ row, column }) => injectionOf(row, column) === undefined);
    expect(new Set(none.map(({ row, column }) => `${row}/${column}`))).toEqual(
      new Set(["J07/1n", "J07/1e", "J07/1a", "J07/T", "J07/C"]),
    );
  });

  it("report if they cannot be injected on several servers; all can be injected on one server", async () => {
    const missing = CELLS.filter(({ row, column }) => injectionOf(row, column)?.unavailable !== undefined);
    const onSeveral = missing
      .filter((cell) => !SINGLE_CELLS.includes(cell))
      .map(({ row, column }) => `${row}/${column}`);
    expect(onSeveral).toEqual(["J07/Q3", "J07/Q5", "J14/T", "J14/C", "J14/Q3", "J14/Q5"]);
    // With one server, only the row that needs a separate network may be unavailable, on some machines.
    expect(new Set(missing.filter((cell) => SINGLE_CELLS.includes(cell)).map(({ row }) => row))).toEqual(
      new Set(["J14"]),
    );
  });

  it("belong to exactly one row each", () => {
    const rows = INJECTIONS.map(({ row }) => row);
    expect(new Set(rows).size).toBe(rows.length);
    expect(rows.filter((row) => !ROWS.some((line) => line.row === row))).toEqual([]);
  });

  it("leave clients idle if two holders are directed", () => {
    const broken = SINGLE_CELLS.filter(({ expectation }) => expectation === "broken").map(({ row }) => row);
    const busy = broken.filter((row) => injectionOf(row)?.work !== undefined);
    // This row is promised in only one column, and handles that itself.
    expect([...new Set(busy)]).toEqual(["J27"]);
  });
});
