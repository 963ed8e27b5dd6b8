// @ts-check
import { relative } from "node:path";

/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} TestResult */
/** @typedef {{ name: string, status: string, message?: string, assertionResults: TestResult[] }} FileResult */

/**
 * What failed, a line each: the file, the test, where in it and the first line of its error. Of a long log, often only the end is
 * kept.
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
 * Where the error came from: the last of its places that is in a test, or in a contract. A library's own frames say less.
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
 * A file that could not be loaded has no tests, the tests of a file whose `beforeAll` fails are skipped, and an error outside of any
 * test belongs to none; each counts as one failure, so that a red run never says "0 failed".
 *
 * @param {{ testResults: FileResult[] } | undefined} report  undefined: there is none
 * @param {number} exitCode  of vitest
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
