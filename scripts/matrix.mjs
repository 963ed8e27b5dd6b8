// @ts-check
/**
 * npm run matrix [-- SERVER … RUNTIME … and options]: runs the tests on each server and runtime that Holdfast supports.
 *
 * SERVER and RUNTIME are parts of names, such as `valkey` or `node-24`. One alone runs all of its suites, and both together
 * run the contracts for that server on that runtime. Without either, all cells run. Missing servers and runtimes are
 * downloaded, see scripts/matrix/pins.json. Options:
 *
 *   --list         list the cells and their suites, and run none
 *   --slice        run the part for one change: contracts on the newest servers, and one other suite chosen by the commit
 *   --suite TEXT   run only suites whose title contains TEXT
 *   --record       write the counts to docs/platforms.md
 *
 * A skipped test counts as failed, and so does a cell that could not be fetched. The output of vitest is kept in
 * .cache/platforms/logs. The last line is `N passed, N failed`.
 */
import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv, env, exit } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { cells, named, slice } from "./matrix/cells.mjs";
import { CACHE, fetched } from "./matrix/fetch.mjs";
import { record } from "./matrix/table.mjs";
import { build, dependencies, redisServer, root, stop, tools } from "./setup.mjs";
import { failures, tally } from "./tally.mjs";

/** Timeout of one suite. A suite that hangs fails, and the others continue. */
const SUITE_MS = 1_200_000;
/** The number of suites that run in parallel, of those that mostly wait. */
const SIDE_BY_SIDE = 4;

const { values, positionals } = parseArgs({
  args: argv.slice(2),
  allowPositionals: true,
  options: {
    list: { type: "boolean" },
    slice: { type: "boolean" },
    suite: { type: "string", default: "" },
    record: { type: "boolean" },
  },
});
const chosen = (values.slice === true ? slice(commit()) : named(positionals))
  .map((cell) => ({ ...cell, suites: cell.suites.filter(({ title }) => title.includes(values.suite)) }))
  .filter(({ suites }) => suites.length > 0);
const isUnknown = (/** @type {string} */ word) => !cells.some(({ name }) => name.includes(word));
if (chosen.length === 0 || positionals.some(isUnknown)) {
  const what = positionals.find(isUnknown) ?? `${positionals.join(" ")} with the suite ${values.suite}`;
  stop(`there is no ${what} among ${cells.map(({ name }) => name).join(", ")}`);
}
if (values.list === true) {
  for (const { name, suites } of chosen) console.log(`${name}: ${suites.map(({ title }) => title).join(", ")}`);
  exit(0);
}

await dependencies();
await build();
const logs = join(CACHE, "logs");
mkdirSync(logs, { recursive: true });
/** @type {{ cell: string, suite: string, passed: number, failed: number }[]} */
const results = [];
let unfetched = 0;
/** @type {{ cell: import("./matrix/cells.mjs").Cell, suite: import("./matrix/cells.mjs").Suite, server: string, runtime: string }[]} */
const plays = [];
for (const cell of chosen) {
  try {
    const server = cell.server === undefined ? await redisServer() : fetched(cell.server);
    const runtime = cell.runtime === undefined ? process.execPath : fetched(cell.runtime);
    plays.push(...cell.suites.map((suite) => ({ cell, suite, server, runtime })));
  } catch (error) {
    unfetched += 1;
    console.log(
      `failed: ${cell.name}: could not be fetched: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
const quiet = plays.filter(({ suite }) => suite.isQuiet === true);
await Promise.all(Array.from({ length: SIDE_BY_SIDE }, () => played(quiet)));
await played(plays.filter(({ suite }) => suite.isQuiet !== true));
const passed = results.reduce((sum, each) => sum + each.passed, 0);
const failed = unfetched + results.reduce((sum, each) => sum + each.failed, 0);
console.log(`${passed} passed, ${failed} failed`);
exit(failed === 0 && passed > 0 ? 0 : 1);

/**
 * Runs one suite after the other until none is left.
 *
 * @param {typeof plays} left
 */
async function played(left) {
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const { cell, suite } = next;
    const startedAtMs = performance.now();
    const counts = await play(next);
    results.push({ cell: cell.name, suite: suite.title, passed: counts.passed, failed: counts.failed });
    // After each suite, so that an interrupted run keeps its results.
    if (values.record === true) record(results, new Date());
    for (const trouble of counts.troubles) console.log(`failed: ${cell.name}, ${suite.title}: ${trouble}`);
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const mark = counts.failed === 0 ? "✓" : "✗";
    console.log(`${mark} ${cell.name}, ${suite.title}: ${counts.passed} passed, ${counts.failed} failed, ${seconds} s`);
  }
}

/**
 * @param {typeof plays[number]} one
 * @returns {Promise<{ passed: number, failed: number, troubles: string[] }>}
 */
async function play({ cell, suite, server, runtime }) {
  const log = join(logs, `${cell.name}-${suite.title}`.replace(/[^\w.]+/g, "-").concat(".log"));
  // Tests that start `node` get the same version.
  const settings = { HOLDFAST_REDIS_SERVER: server, PATH: `${dirname(runtime)}:${env.PATH ?? ""}` };
  if (suite.files === "tour") {
    const words = cell.runtime === "deno" ? ["run", "--allow-all", "--no-lock", "--node-modules-dir=manual"] : [];
    const { code } = await ended(runtime, [...words, "verify/platforms/tour.mjs"], settings, log);
    return ofTour(readFileSync(log, "utf8"), code);
  }
  const report = log.replace(/log$/, "json");
  rmSync(report, { force: true });
  const outside = fileURLToPath(new URL("./outside-errors.mjs", import.meta.url));
  const output = ["--reporter=verbose", "--reporter=json", `--outputFile.json=${report}`, `--reporter=${outside}`];
  // All contracts, even on client libraries for which a plain run has only a selection.
  const all = suite.isQuiet === true ? { HOLDFAST_TESTS: "all" } : {};
  const words = [tools.vitest, "run", ...output, ...suite.files];
  const { code, isLate } = await ended(runtime, words, { ...settings, ...all }, log);
  const results = read(report);
  const { passed, failed, skipped } = tally(results, code);
  const troubles = [...failures(results, root), ...skipped.map((name) => `skipped: ${name}`)];
  if (isLate) troubles.push(`did not end within ${SUITE_MS / 60_000} minutes, see ${log}`);
  else if (code !== 0 && troubles.length === 0) troubles.push(`vitest ended with code ${code}, see ${log}`);
  return { passed, failed: failed + skipped.length, troubles };
}

/**
 * @param {string} text  the output of a tour
 * @param {number} code
 */
function ofTour(text, code) {
  const [, passed = "0", failed = "0"] = /^(\d+) passed, (\d+) failed$/m.exec(text) ?? [];
  const troubles = [...text.matchAll(/^✗ (.*)$/gm)].map(([, trouble = ""]) => trouble);
  if (code !== 0 && troubles.length === 0) troubles.push(text.trim().split("\n").slice(-3).join(" | "));
  return { passed: Number(passed), failed: Math.max(Number(failed), code === 0 && passed !== "0" ? 0 : 1), troubles };
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Record<string, string>} settings
 * @param {string} log  file for its output
 * @returns {Promise<{ code: number, isLate: boolean }>}
 */
function ended(command, args, settings, log) {
  return new Promise((resolve) => {
    const out = openSync(log, "w");
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", out, out], env: { ...env, ...settings } });
    closeSync(out);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill("SIGTERM");
      setTimeout(() => child.kill("SIGKILL"), 10_000).unref();
    }, SUITE_MS);
    child.on("error", () => {});
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? 1, isLate });
    });
  });
}

/** @param {string} file */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined; // vitest ended before it could write a report
  }
}

/** @returns {string} hash of the current commit; zeros if there is no repository */
function commit() {
  try {
    return execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return "0".repeat(40);
  }
}
