import { describe, expect, it } from "vitest";

import type { Expectation } from "../src/faults/cell.js";
import { graceOf, releasesOf } from "../src/faults/columns.js";
import { injectionOf } from "../src/faults/injections/table.js";
import { BESIDE, CELLS, LIVENESS_CELLS, MATRIX, OWN, rowNamed, SINGLE_CELLS } from "../src/faults/matrix.js";
import { quickCells, readOptions } from "../src/faults/options.js";

function count(expectation: Expectation): number {
  return CELLS.filter((cell) => cell.expectation === expectation).length;
}

describe("the matrix", () => {
  it("has as many cells as the reference", () => {
    expect(CELLS).toHaveLength(298);
    expect([count("kept"), count("broken"), count("reported"), count("refused")]).toEqual([213, 67, 11, 7]);
  });

  it("names each cell once", () => {
    expect(new Set(CELLS.map(({ id }) => id)).size).toBe(CELLS.length);
    expect(new Set(MATRIX.map(({ row }) => row)).size).toBe(MATRIX.length);
  });

  it("has every fault of the list", () => {
    for (let number = 1; number <= 38; number += 1) {
      const name = `J${String(number).padStart(2, "0")}`;
      expect(
        MATRIX.some(({ row }) => row === name || row.startsWith(`${name}-`)),
        name,
      ).toBe(true);
    }
  });

  it("combines every kind with every class of faults that its servers can have", () => {
    for (const letter of "mrwsfktal") {
      const classes = MATRIX.filter(({ cells }) => cells.some((cell) => cell.letter === letter)).map(
        ({ faultClass }) => faultClass,
      );
      const missing = ["client", "network", "server", "durability", "clock", "failover", "operator"].filter(
        (each) => !classes.some((found) => found === each),
      );
      // Nothing is promised if an operator changes a latch.
      expect(missing, letter).toEqual(letter === "l" ? ["operator"] : []);
    }
  });

  it("judges tokens and effects in the rows about them", () => {
    const judged = (row: string): string[] => [...new Set(rowNamed(row).cells.map((cell) => cell.judged))];
    expect(judged("J38-plain")).toEqual(["tokens"]);
    expect(judged("J25")).toEqual(["leases"]);
    expect(judged("J01-fenced")).toEqual(["effects"]);
  });

  it("has 110 cells with a single server", () => {
    expect(SINGLE_CELLS).toHaveLength(110);
  });

  it("has additional cells: for kinds that its rows lack, and in additional rows", () => {
    expect(new Set([...CELLS, ...BESIDE].map(({ id }) => id)).size).toBe(CELLS.length + BESIDE.length);
    const own = new Set(OWN.flatMap(({ cells }) => cells));
    const ofItsRows = BESIDE.filter((cell) => !own.has(cell));
    for (const { row, letter, expectation } of ofItsRows) {
      expect(rowNamed(row).cells.some((cell) => cell.letter === letter)).toBe(false);
      expect(expectation).toBe("kept");
    }
    expect(new Set(ofItsRows.map(({ letter }) => letter))).toEqual(new Set("ebc"));
    expect(OWN.filter(({ row }) => MATRIX.some((line) => line.row === row))).toEqual([]);
  });

  it("has the rows about memory loss and promotion again with the grace on, for all letters that they have without", () => {
    const lettersOf = (row: string): Set<string> =>
      new Set(
        rowNamed(row)
          .cells.filter(({ column }) => column === "T")
          .map(({ letter }) => letter),
      );
    for (const row of ["J25", "J26", "J31", "J33"]) expect(lettersOf(`${row}-grace`)).toEqual(lettersOf(row));
    expect(
      rowNamed("J31-grace")
        .cells.filter(({ column }) => column === "T")
        .map(graceOf),
    ).toEqual(Array.from({ length: 4 }, () => "auto"));
    expect(
      rowNamed("J31")
        .cells.map(graceOf)
        .every((grace) => grace === "off"),
    ).toBe(true);
  });

  it("has rows whose clients release in the background or retain the lock, and all others await the release", () => {
    const background = OWN.filter(({ cells }) => cells.some((cell) => releasesOf(cell) === "background"));
    expect(background.map(({ row }) => row)).toEqual(["J03-background", "J10-background", "J24-background"]);
    expect(injectionOf("J10-background")?.row).toBe("J10");
    expect(injectionOf("J03-background")?.row).toBe("J03-background");
    const retained = OWN.filter(({ cells }) => cells.some((cell) => releasesOf(cell) === "retained"));
    expect(retained.map(({ row }) => row)).toEqual(["J03-retained"]);
    expect(injectionOf("J03-retained")?.row).toBe("J03-retained");
    expect(injectionOf("J03-native")?.row).toBe("J03-native");
    expect(CELLS.every((cell) => releasesOf(cell) === "awaited")).toBe(true);
  });

  it("plays redlock on a quorum, whatever kind the reference has there", () => {
    const letters = [...CELLS, ...BESIDE].filter(({ column }) => column.startsWith("Q")).map(({ letter }) => letter);
    expect(new Set(letters)).toEqual(new Set("mta"));
    expect(CELLS.find(({ id }) => id === "J01/Q3/k")?.letter).toBe("m");
  });

  it("refuses an unknown row", () => {
    expect(() => rowNamed("J99")).toThrow(RangeError);
  });
});

describe("the quick run for a change", () => {
  it("has the cells that are marked for it, and a promised one of each class that can run", () => {
    const quick = quickCells();
    const ids = quick.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["J10/1n/w", "J17/1e/k", "J01-fenced/1a/t"]));
    const classOf = (row: string): string => rowNamed(row).faultClass;
    const kept = quick.filter(({ expectation }) => expectation === "kept").map(({ row }) => classOf(row));
    expect(new Set(kept)).toEqual(
      new Set(["network", "client", "server", "durability", "clock", "operator", "failover"]),
    );
    expect(quick.filter(({ expectation }) => expectation === "broken").length).toBeGreaterThanOrEqual(4);
  });
});

describe("the options", () => {
  it("choose cells by name, row and column", () => {
    const ids = (...args: string[]): string[] => readOptions(args).cells.map(({ id }) => id);
    expect(ids("--cells", "J10/1n/w,J17/1e/k")).toEqual(["J10/1n/w", "J17/1e/k"]);
    expect(ids("--rows", "J27", "--columns", "1e,1a")).toEqual(["J27/1e/s", "J27/1a/l"]);
    expect(readOptions([]).cells).toEqual([...CELLS, ...BESIDE, ...LIVENESS_CELLS]);
    expect(ids("--cells", "J16/1e/e")).toEqual(["J16/1e/e"]);
  });

  it.each([
    ["a cell that does not exist", ["--cells", "J10/1n/x"], /no cell J10\/1n\/x/],
    ["a cell that the columns leave out", ["--cells", "J10/1n/w", "--columns", "1a"], /no cell/],
    ["a duration that is not a number", ["--seconds", "soon"], /--seconds/],
    ["an option that does not exist", ["--fast"], /--fast/],
  ])("refuse %s", (_, args, message) => {
    expect(() => readOptions(args)).toThrow(message);
  });
});
