import { expect, it } from "vitest";

import { failures, tally } from "../../scripts/tally.mjs";

function file(...statuses: string[]): Parameters<typeof tally>[0] {
  const assertionResults = statuses.map((status, i) => ({ status, fullName: `test ${i}` }));
  return { testResults: [{ name: "a.test.ts", status: "failed", assertionResults }] };
}

it("the tally counts each test once and names those that did not run", () => {
  const counted = tally(file("passed", "failed", "passed", "pending", "todo", "skipped"), 1);
  expect(counted).toEqual({ passed: 2, failed: 1, skipped: ["test 3", "test 4", "test 5"] });
});

it("a file that fails to load counts as a failure", () => {
  expect(tally(file(), 1)).toEqual({ passed: 0, failed: 1, skipped: [] });
});

it("a file that failed in a hook counts as a failure beside the failed tests of another file", () => {
  const report = {
    testResults: [...(file("skipped", "skipped")?.testResults ?? []), ...(file("failed")?.testResults ?? [])],
  };
  expect(tally(report, 1)).toEqual({ passed: 0, failed: 2, skipped: ["test 0", "test 1"] });
  expect(failures(report, "")).toHaveLength(2);
});

it("an error outside all tests counts as a failure", () => {
  expect(tally(file("passed"), 1)).toEqual({ passed: 1, failed: 1, skipped: [] });
});

it("a run that ends before it reports counts as a failure", () => {
  expect(tally(undefined, 1)).toEqual({ passed: 0, failed: 1, skipped: [] });
});

it("each failure takes one line with the file, the position and the start of the error", () => {
  const report = {
    testResults: [
      {
        name: "/folder/tests/a.test.ts",
        status: "failed",
        assertionResults: [
          { status: "passed", fullName: "goes well" },
          { status: "failed", fullName: "goes wrong", failureMessages: ["Error: two holders"] },
          {
            status: "failed",
            fullName: "goes wrong in a contract",
            failureMessages: [
              "Error: late\n    at wait (/folder/src/wait.ts:9:1)\n    at /folder/src/mutex.contract.ts:31:7",
            ],
          },
        ],
      },
      { name: "/folder/tests/b.test.ts", status: "failed", message: "cannot find c", assertionResults: [] },
    ],
  };
  expect(failures(report, "/folder")).toEqual([
    "tests/a.test.ts: goes wrong: Error: two holders",
    "tests/a.test.ts (mutex.contract.ts:31): goes wrong in a contract: Error: late",
    "tests/b.test.ts: cannot find c",
  ]);
  expect(failures(undefined, "/folder")).toEqual([]);
});
