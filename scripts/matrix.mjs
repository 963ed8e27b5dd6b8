// @ts-check
/**
 * npm run matrix [-- CELL … and options]: the tests on each server and each runtime that Holdfast supports.
 *
 * A CELL is part of a cell's name, such as `valkey` or `node-24`; without one, all run. What is missing is fetched, see
 * scripts/matrix/pins.json. Options:
 *
 *   --list         names the cells and their suites, and runs none
 *   --slice        the part for a single change: contracts on the newest servers, and one other cell chosen by the commit
 *   --suite TEXT   only suites whose title contains TEXT
 *   --record       writes the counts to docs/platforms.md
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

import { cells, slice } from "./matrix/cells.mjs";
import { CACHE, fetched } from "./matrix/fetch.mjs";
import { record } from "./matrix/table.mjs";
import { build, dependencies, redisServer, root, stop, tools } from "./setup.mjs";
import { failures, tally } from "./tally.mjs";

/** Longest time for one suite, in ms. A suite that hangs is red, and the rest goes on. */
const SUITE_MS = 1_200_000;

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
const offered = values.slice === true ? slice(commit()) : cells;
const chosen = offered
  .filter(({ name }) => positionals.length === 0 || positionals.some((text) => name.includes(text)))
  .map((cell) => ({ ...cell, suites: cell.suites.filter(({ title }) => title.includes(values.suite)) }))
  .filter(({ suites }) => suites.length > 0);
if (chosen.length === 0) stop(`no cell matches; there are ${cells.map(({ name }) => name).join(", ")}`);
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
for (const cell of chosen) {
  /** @type {string} */
  let program;
  try {
    program = fetched(cell.name);
  } catch (error) {
    unfetched += 1;
    console.log(
      `failed: ${cell.name}: could not be fetched: ${error instanceof Error ? error.message : String(error)}`,
    );
    continue;
  }
  for (const suite of cell.suites) {
    const startedAtMs = performance.now();
    const counts = await play(cell, suite, program);
    results.push({ cell: cell.name, suite: suite.title, passed: counts.passed, failed: counts.failed });
    for (const trouble of counts.troubles) console.log(`failed: ${cell.name}, ${suite.title}: ${trouble}`);
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const mark = counts.failed === 0 ? "✓" : "✗";
    console.log(`${mark} ${cell.name}, ${suite.title}: ${counts.passed} passed, ${counts.failed} failed, ${seconds} s`);
  }
}
if (values.record === true) record(results, new Date());
const passed = results.reduce((sum, each) => sum + each.passed, 0);
const failed = unfetched + results.reduce((sum, each) => sum + each.failed, 0);
console.log(`${passed} passed, ${failed} failed`);
exit(failed === 0 && passed > 0 ? 0 : 1);

/**
 * @param {import("./matrix/cells.mjs").Cell} cell
 * @param {import("./matrix/cells.mjs").Suite} suite
 * @param {string} program  of the cell
 * @returns {Promise<{ passed: number, failed: number, troubles: string[] }>}
 */
async function play(cell, suite, program) {
  const server = cell.kind === "server" ? program : await redisServer();
  const runtime = cell.kind === "runtime" ? program : process.execPath;
  const log = join(logs, `${cell.name}-${suite.title.replace(/\W+/g, "-")}.log`);
  // Child processes of tests that start `node` get the same one.
  const settings = { HOLDFAST_REDIS_SERVER: server, PATH: `${dirname(runtime)}:${env.PATH ?? ""}` };
  if (suite.files === "tour") {
    const words = cell.name === "deno" ? ["run", "--allow-all", "--no-lock", "--node-modules-dir=manual"] : [];
    const { code } = await ended(runtime, [...words, "verify/platforms/tour.mjs"], settings, log);
    return ofTour(readFileSync(log, "utf8"), code);
  }
  const report = log.replace(/log$/, "json");
  rmSync(report, { force: true });
  const outside = fileURLToPath(new URL("./outside-errors.mjs", import.meta.url));
  const output = ["--reporter=verbose", "--reporter=json", `--outputFile.json=${report}`, `--reporter=${outside}`];
  const { code, isLate } = await ended(runtime, [tools.vitest, "run", ...output, ...suite.files], settings, log);
  const results = read(report);
  const { passed, failed, skipped } = tally(results, code);
  const troubles = [...failures(results, root), ...skipped.map((name) => `skipped: ${name}`)];
  if (isLate) troubles.push(`did not end within ${SUITE_MS / 60_000} minutes, see ${log}`);
  else if (code !== 0 && troubles.length === 0) troubles.push(`vitest ended with code ${code}, see ${log}`);
  return { passed, failed: failed + skipped.length, troubles };
}

/**
 * @param {string} text  what a tour printed
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
 * @param {string} log  file for what it prints
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

/** @returns {string} hash of the present commit */
function commit() {
  return execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
}
