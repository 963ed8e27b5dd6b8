import { expect, test } from "vitest";
import { type Arrival, judgeBarrier } from "../src/simulation/kinds/barrier-model.js";

const PARTIES = 2;

function passed(callMs: number, returnMs: number, generation: number, index: number): Arrival {
  return { callMs, returnMs, end: { what: "passed", generation, index } };
}

const broke = (callMs: number, returnMs: number, generation: number): Arrival => {
  return { callMs, returnMs, end: { what: "broke", generation } };
};

const unknown = (callMs: number, returnMs = Infinity): Arrival => ({ callMs, returnMs, end: { what: "unknown" } });

test.each<[what: string, arrivals: Arrival[]]>([
  ["two that met", [passed(0, 5, 1, 0), passed(4, 6, 1, 1)]],
  ["two generations of the same two", [passed(0, 5, 1, 0), passed(4, 6, 1, 1), passed(6, 9, 2, 0), passed(7, 9, 2, 1)]],
  ["one that met another that never returned", [passed(0, 5, 1, 0), unknown(3)]],
  ["two that broke", [broke(0, 5, 1), broke(1, 5, 1)]],
  ["one that met another that returned without an outcome", [passed(0, 9, 1, 0), unknown(3, 4)]],
])("a barrier may have: %s", (_, arrivals) => {
  expect(judgeBarrier(arrivals, PARTIES).wrong).toEqual([]);
});

test.each<[what: string, arrivals: Arrival[]]>([
  ["one that passed alone", [passed(0, 5, 1, 0)]],
  ["one that passed before the other came", [passed(0, 5, 1, 0), passed(6, 7, 1, 1)]],
  ["one that passed before another came that never returned", [passed(0, 5, 1, 0), unknown(6)]],
  ["two with one place", [passed(0, 5, 1, 0), passed(4, 6, 1, 0)]],
  ["three for two", [passed(0, 5, 1, 0), passed(0, 5, 1, 1), passed(0, 5, 1, 2)]],
  ["one that passed and one that broke", [passed(0, 5, 1, 0), passed(0, 5, 1, 1), broke(0, 5, 1)]],
  [
    "a later generation that passed before an earlier one",
    [passed(10, 15, 1, 0), passed(10, 15, 1, 1), passed(0, 5, 2, 0), passed(0, 5, 2, 1)],
  ],
])("no barrier has: %s", (_, arrivals) => {
  expect(judgeBarrier(arrivals, PARTIES).wrong).not.toEqual([]);
});
