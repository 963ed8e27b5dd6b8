// @ts-check
import { relative } from "node:path";

/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} TestResult */
/** @typedef {{ name: string, status: string, message?: string, assertionResults: TestResult[] }} FileResult */

/**
 * The failures in one line each, because often only the end of a long log is kept: the file, the position, the test and the
 * first line of its error.
 *
 * @param {{ testResults: FileResult[] } | undefined} report
 * @param {string} root  folder from which files are named
 * @returns {string[]}
 */
export function failures(report, root) {
  return (report?.testResults ?? []).flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const red = assertionResults.filter((test) => test.status === "failed");
    if (status === "failed" && red.length === 0)
      return [`${file}: ${firstLine(message) || "a hook of the file failed"}`];
    return red.map(({ fullName, failureMessages }) => {
      const error = failureMessages?.[0];
      return `${file}${placeOf(error)}: ${fullName}: ${firstLine(error)}`;
    });
  });
}

/**
 * The position of an error: the last frame in a test or a contract. The frames of a library say less.
 *
 * @param {string | undefined} error
 */
function placeOf(error = "") {
  const places = [...error.matchAll(/([\w.-]+\.(?:test|contract)\.ts:\d+):\d+/g)];
  return places.length === 0 ? "" : ` (${places.at(-1)?.[1]})`;
}

/** @param {string | undefined} text */
const firstLine = (text) => (text ?? "").trim().split("\n", 1)[0]?.slice(0, 300) ?? "";

/**
 * Counts a report of vitest's JSON reporter.
 *
 * Three things fail without a failed test: a file that cannot be loaded, a file whose `beforeAll` fails, and an error
 * outside of any test. Each counts as one failure, so that a failed run never says "0 failed".
 *
 * @param {{ testResults: FileResult[] } | undefined} report  undefined if there is none
 * @param {number} exitCode  the exit code of vitest
 * @returns {{ passed: number, failed: number, skipped: string[] }}
 */
export function tally(report, exitCode) {
  const files = report?.testResults ?? [];
  const tests = files.flatMap((file) => file.assertionResults);
  const isRed = (/** @type {TestResult} */ test) => test.status === "failed";
  const unloaded = files.filter((file) => file.status === "failed" && !file.assertionResults.some(isRed)).length;

  const passed = tests.filter(({ status }) => status === "passed").length;
  const failed = tests.filter(isRed).length + unloaded;
  const skipped = tests.filter(({ status }) => status !== "passed" && status !== "failed");
  return {
    passed,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: skipped.map(({ fullName }) => fullName),
  };
}
