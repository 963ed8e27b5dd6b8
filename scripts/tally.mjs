// @ts-check

/** @typedef {{ status: string, fullName: string }} TestResult */
/** @typedef {{ name: string, status: string, assertionResults: TestResult[] }} FileResult */

/**
 * Counts a report of vitest's JSON reporter.
 *
 * A file that could not be loaded has no tests, and an error outside of any test belongs to none; each counts
 * as one failure, so that a red run never says "0 failed".
 *
 * @param {{ testResults: FileResult[] } | undefined} report  undefined: there is none
 * @param {number} exitCode  of vitest
 * @returns {{ passed: number, failed: number, skipped: string[] }}
 */
export function tally(report, exitCode) {
  const files = report?.testResults ?? [];
  const tests = files.flatMap((file) => file.assertionResults);
  const unloaded = files.filter((file) => file.status === "failed" && file.assertionResults.length === 0).length;

  const passed = tests.filter(({ status }) => status === "passed").length;
  const failed = tests.filter(({ status }) => status === "failed").length + unloaded;
  const skipped = tests.filter(({ status }) => status !== "passed" && status !== "failed");
  return {
    passed,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: skipped.map(({ fullName }) => fullName),
  };
}
