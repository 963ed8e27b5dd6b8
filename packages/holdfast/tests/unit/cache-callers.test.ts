/** The callers of one entry of a cache, however many there are. */
import { expect, test } from "vitest";
import { Callers } from "../../src/recipes/cache/callers.js";

test("of hundreds of thousands the first and the last end are known", () => {
  const callers = new Callers<string>(() => {});
  const nothing = { load: () => "", signal: undefined, trace: undefined, resolve: () => {}, reject: () => {} };
  const count = 300_000;
  for (let untilMs = count; untilMs >= 1; untilMs -= 1) callers.add({ ...nothing, untilMs }, 0);
  expect([callers.count, callers.soonestMs, callers.latestMs]).toEqual([count, 1, count]);
  expect(callers.overdue(1)?.facts.untilMs).toBe(1);
});

test("where nobody is left there is no end to wait for", () => {
  const callers = new Callers<string>(() => {});
  expect([callers.count, callers.soonestMs, callers.latestMs]).toEqual([0, Infinity, -Infinity]);
});
