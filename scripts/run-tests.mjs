// @ts-check
/**
 * One run of vitest as a command of this repository: its last line is `N passed, N failed`.
 *
 * Skipped tests are always listed, and count as failures if CI=true.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { fileURLToPath } from "node:url";

import { node, root, tools } from "./setup.mjs";
import { failures, tally } from "./tally.mjs";

/**
 * @param {readonly string[]} args  arguments of vitest
 * @param {NodeJS.ProcessEnv} settings  for the tests
 * @returns {Promise<number>} the exit code
 */
export async function runTests(args, settings) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const report = join(folder, "report.json");
  const reporter = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=default"];
  const outside = fileURLToPath(new URL("./outside-errors.mjs", import.meta.url));
  const output = ["--reporter=json", `--outputFile.json=${report}`, `--reporter=${outside}`];
  const code = await node([tools.vitest, "run", ...reporter, ...output, ...args], settings);

  const results = read(report);
  const { passed, failed, skipped } = tally(results, code);
  for (const failure of failures(results, root)) console.log(`failed: ${failure}`);
  if (code !== 0 && failures(results, root).length === 0)
    console.log(`failed: vitest ended with code ${code} although no test failed; the error is above`);
  rmSync(folder, { recursive: true });

  // With a name filter, vitest reports all other tests as skipped, as intended.
  const isNarrowed = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
  if (!isNarrowed) for (const name of skipped) console.log(`skipped: ${name}`);
  const red = failed + (env.CI === "true" ? skipped.length : 0);
  console.log(`${passed} passed, ${red} failed`);
  return red > 0 || passed === 0 ? code || 1 : code;
}

/** @param {string} file */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined; // vitest ended before it could write a report
  }
}
