/** Tracks the deadlines of all callers of one cache entry. */
import { expect, test } from "vitest";
import { Callers } from "../src/cache/callers.js";

test("the earliest and latest deadlines are correct for 300 000 callers", () => {
  const callers = new Callers<string>(() => {});
  const nothing = { load: () => "", signal: undefined, trace: undefined, resolve: () => {}, reject: () => {} };
  const count = 300_000;
  for (let untilMs = count; untilMs >= 1; untilMs -= 1) callers.add({ ...nothing, untilMs }, 0);
  expect([callers.count, callers.soonestMs, callers.latestMs]).toEqual([count, 1, count]);
  expect(callers.overdue(1)?.facts.untilMs).toBe(1);
});

test("without callers there is no deadline", () => {
  const callers = new Callers<string>(() => {});
  expect([callers.count, callers.soonestMs, callers.latestMs]).toEqual([0, Infinity, -Infinity]);
});
