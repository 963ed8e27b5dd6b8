import { expect, it } from "vitest";
import { runsOf } from "../../src/ui/runs.js";

const at = (...seconds: number[]): { atMs: number }[] => seconds.map((second) => ({ atMs: second * 1_000 }));
const lengths = (...seconds: number[]): number[] => runsOf(at(...seconds)).map((run) => run.length);

it("a line is interrupted where no page was open, but not where a reading was slow", () => {
  expect(lengths(0, 1, 2, 3)).toEqual([4]);
  expect(lengths(0, 1, 2, 14, 15)).toEqual([5]);
  expect(lengths(0, 1, 2, 600, 601)).toEqual([3, 2]);
  expect(lengths(0, 60, 120, 180, 1_000)).toEqual([4, 1]);
  expect(lengths(5)).toEqual([1]);
  expect(lengths()).toEqual([]);
  expect(runsOf(at(0, 1, 600)).flat()).toEqual(at(0, 1, 600));
});
