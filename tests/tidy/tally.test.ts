import { expect, it } from "vitest";

import { tally } from "../../scripts/tally.mjs";

function file(...statuses: string[]): Parameters<typeof tally>[0] {
  const assertionResults = statuses.map((status, i) => ({ status, fullName: `test ${i}` }));
  return { testResults: [{ name: "a.test.ts", status: "failed", assertionResults }] };
}

it("each test counts once, and one that did not run is named", () => {
  const counted = tally(file("passed", "failed", "passed", "pending", "todo", "skipped"), 1);
  expect(counted).toEqual({ passed: 2, failed: 1, skipped: ["test 3", "test 4", "test 5"] });
});

it("a file that could not be loaded is a failure", () => {
  expect(tally(file(), 1)).toEqual({ passed: 0, failed: 1, skipped: [] });
});

it("an error outside of any test is a failure", () => {
  expect(tally(file("passed"), 1)).toEqual({ passed: 1, failed: 1, skipped: [] });
});

it("a run that ended before it could report is a failure", () => {
  expect(tally(undefined, 1)).toEqual({ passed: 0, failed: 1, skipped: [] });
});
