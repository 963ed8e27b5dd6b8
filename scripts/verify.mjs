// @ts-check
/**
 * npm run verify:…: verifies the production scripts beyond what tests can show.
 *
 * `verify:sim`, `verify:search`, `verify:faults`, `verify:failovers` and `verify:upgrade` are one command each, with
 * their own arguments. `verify:pr`, `verify:nightly` and `verify:release` run several of them for a limited time and write
 * one report. Their last line is `N passed, N failed`, the sum over all parts.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { join } from "node:path";
import { argv, execPath, exit, stdout } from "node:process";

import { build, dependencies, node, redisServer, root } from "./setup.mjs";

/**
 * One command of a run.
 *
 * @typedef {object} Step
 * @property {string} part  folder under verify/src
 * @property {string[]} args
 * @property {string} [program]  another program of that folder than the main one
 * @property {string} [folder]  name of its folder or results in the report, if a run has several steps of one part
 */

/** One process per core for the simulation, except for one core, which the search uses. */
const JOBS = ["--jobs", String(Math.max(1, availableParallelism() - 1))];

/** The lowest priority, where the system has priorities: the process runs when no other wants the core. */
const LEAST_PRIORITY = 19;

/** The number of the day is the default seed, so that every night tests something new. */
const TODAY = Math.floor(Date.now() / 86_400_000);

/** Tests of clusters and sentinels. `npm test` runs only a selection of them. @type {Step} */
const ALL_TESTS = { part: "tests", args: ["tests/contract/", "cluster.test.ts", "sentinel.test.ts"] };

/**
 * The simulation that alternates between quorums and failovers of masters.
 *
 * @param {string} seeds
 * @returns {Step}
 */
function onSeveralServers(seeds) {
  return { part: "simulation", args: ["--topology", "both", "--seeds", seeds, ...JOBS], folder: "topologies" };
}

/**
 * The simulation of retained mutexes, which the simulation of the other kinds does not include.
 *
 * @param {string} seeds
 * @returns {Step}
 */
function retained(seeds) {
  return { part: "simulation", args: ["--kind", "retained-mutex", "--seeds", seeds, ...JOBS], folder: "retained" };
}

/**
 * The steps of each run.
 *
 * `pr` always uses the same seeds, so that a failure comes from the change and not from the date.
 *
 * @type {Record<string, (seed: number, minutes: number | undefined) => { seed: number, steps: Step[] }>}
 */
const RUNS = {
  pr: (seed) => ({
    seed,
    steps: [
      { part: "search", args: ["--quick"] },
      { part: "simulation", args: ["--seeds", range(seed, 1_000), ...JOBS] },
      { part: "teeth", args: ["--quick"] },
      // Half a minute of contention, most of it between both versions.
      { part: "upgrade", args: ["--seconds", "5", "--seed", String(seed)] },
      { part: "faults", args: ["--quick", "--seconds", "8", "--seed", String(seed)] },
    ],
  }),
  nightly: (seed, minutes = 60) => ({
    seed,
    steps: [
      { part: "search", args: ["--all", "--check-docs"] },
      { part: "search", program: "failover-main", args: ["--world", "L1,K1,K2"] },
      { part: "search", program: "failover-main", args: ["--rules"] },
      { part: "simulation", args: ["--seeds", range(seed, 60_000), ...JOBS] },
      onSeveralServers(range(seed, 4_000)),
      retained(range(seed, 4_000)),
      { part: "teeth", args: [] },
      ALL_TESTS,
      { part: "matrix", args: [] },
      { part: "failovers", args: ["--count", "20", "--seed", String(seed)] },
      { part: "upgrade", args: ["--seconds", "60", "--seed", String(seed)] },
      // The teeth take about five of the given minutes.
      {
        part: "faults",
        args: ["--minutes", String(Math.max(1, minutes - 5)), "--seconds", "15", "--seed", String(seed)],
      },
    ],
  }),
  release: (seed, minutes = 240) => ({
    seed,
    steps: [
      { part: "search", args: ["--all", "--bound", "large", "--states", "8000000"] },
      { part: "search", program: "failover-main", args: ["--world", "L1,L2,K1,K2,K3,K4"] },
      { part: "search", program: "failover-main", args: ["--rules"] },
      { part: "simulation", args: ["--seeds", range(seed, 200_000), ...JOBS] },
      onSeveralServers(range(seed, 20_000)),
      retained(range(seed, 20_000)),
      { part: "teeth", args: [] },
      ALL_TESTS,
      { part: "failovers", args: ["--count", "200", "--seed", String(seed)] },
      { part: "upgrade", args: ["--seconds", "300", "--seed", String(seed)] },
      {
        part: "faults",
        args: ["--minutes", String(minutes), "--seconds", "60", "--seed", String(seed)],
      },
      { part: "faults", args: ["--peers", "--seconds", "15", "--seed", String(seed)], folder: "peers" },
    ],
  }),
};

/**
 * Whether a step only computes, so that other load cannot affect its result.
 *
 * @param {Pick<Step, "part">} step
 */
const isComputing = ({ part }) => part === "search" || part === "simulation";

const [what = "simulation", ...rest] = argv.slice(2);
await dependencies();
await build();
const plan = RUNS[what];
exit(plan === undefined ? await one({ part: what, args: rest }) : await several(what, plan));

/** @param {Step} step */
async function one({ part, args }) {
  const program = `verify/dist/${part}/main.js`;
  const server =
    part === "faults" || part === "failovers" || part === "upgrade"
      ? { HOLDFAST_REDIS_SERVER: await redisServer() }
      : {};
  return await node([program, ...args], server);
}

/**
 * @param {string} name
 * @param {(typeof RUNS)[string]} make
 */
async function several(name, make) {
  const chosen = Number(option("--seed") ?? (name === "pr" ? 1 : TODAY));
  const minutes = option("--minutes");
  const { seed, steps } = make(chosen, minutes === undefined ? undefined : Number(minutes));
  const report = join(root, "verify/reports", name);
  rmSync(report, { recursive: true, force: true });
  mkdirSync(report, { recursive: true });
  console.log(`verify:${name}, seed ${seed}`);

  const there = steps.filter(({ part }) => {
    const isThere = part === "tests" || part === "matrix" || existsSync(join(root, `verify/src/${part}/main.ts`));
    if (!isThere) console.log(`NOT RUN ${part}: it does not exist`);
    return isThere;
  });
  // Computing steps run with low priority next to the others. A short run does them first, because real servers need the
  // whole machine.
  const computing = Promise.all(there.filter(isComputing).map((step) => played(step, report)));
  const counts = name === "pr" ? await computing : [];
  for (const step of there.filter((each) => !isComputing(each))) counts.push(await played(step, report));
  if (name !== "pr") counts.push(...(await computing));
  const passed = counts.reduce((sum, each) => sum + each.passed, 0);
  const failed = counts.reduce((sum, each) => sum + each.failed, 0);
  console.log(`\nreport: verify/reports/${name}/index.html`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

/**
 * @param {Step} step
 * @param {string} report
 */
function played({ part, args, program, folder = "." }, report) {
  console.log(`— ${program ?? part} ${args.join(" ")}`);
  if (part === "tests") return tests(args);
  if (part === "matrix") return matrix(args);
  if (part === "faults") return faults(args, join(report, folder));
  return program === undefined
    ? other(part, args, report, folder === "." ? part : folder)
    : beside(part, program, args);
}

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 */

/**
 * Runs the faults with exclusive access to the terminal, for their progress line.
 *
 * @param {string[]} args
 * @param {string} report
 * @returns {Promise<Counts>}
 */
async function faults(args, report) {
  const code = await one({ part: "faults", args: [...args, "--report", report] });
  const totals = join(report, "totals.json");
  return counted(existsSync(totals) ? JSON.parse(readFileSync(totals, "utf8")) : undefined, code);
}

/**
 * Runs test files without a selection, and with longer timeouts because they share the machine.
 *
 * @param {string[]} args
 * @returns {Promise<Counts>}
 */
async function tests(args) {
  const { code, text } = await heard("tests", ["scripts/test.mjs", ...args], {
    HOLDFAST_TESTS: "all",
    TEST_DELAY_FACTOR: "1.5",
  });
  return counted(lastLine(text), code);
}

/**
 * Runs the tests on each server and each runtime.
 *
 * @param {string[]} args
 * @returns {Promise<Counts>}
 */
async function matrix(args) {
  const { code, text } = await heard("matrix", ["scripts/matrix.mjs", ...args]);
  return counted(lastLine(text), code);
}

/**
 * Runs any other part, whose last line has the counts.
 *
 * @param {string} part
 * @param {string[]} args
 * @param {string} report
 * @param {string} name  the name of its results
 * @returns {Promise<Counts>}
 */
async function other(part, args, report, name) {
  const file = join(report, `${name}.json`);
  const { code, text } = await heard(part, [`verify/dist/${part}/main.js`, ...args, ...["--json", file]]);
  return counted(lastLine(text), code);
}

/**
 * Runs another program of a part, which writes no file.
 *
 * @param {string} part
 * @param {string} program
 * @param {string[]} args
 * @returns {Promise<Counts>}
 */
async function beside(part, program, args) {
  const { code, text } = await heard(part, [`verify/dist/${part}/${program}.js`, ...args]);
  return counted(lastLine(text), code);
}

/**
 * @param {string} text
 * @returns {Counts | undefined}
 */
function lastLine(text) {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(last) ?? [];
  return passed === undefined ? undefined : { passed: Number(passed), failed: Number(failed) };
}

/**
 * Runs a script, shows its output and returns it.
 *
 * @param {string} part
 * @param {string[]} words
 * @param {Record<string, string>} settings
 * @returns {Promise<{ code: number, text: string }>}
 */
function heard(part, words, settings = {}) {
  return new Promise((resolve) => {
    const env = { ...process.env, ...settings };
    const child = spawn(execPath, words, { cwd: root, stdio: ["ignore", "pipe", "inherit"], env });
    // It runs next to steps that use real servers and real time.
    if (child.pid !== undefined && isComputing({ part })) setPriority(child.pid, LEAST_PRIORITY);
    // Ctrl-C also reaches the child, which decides how to end.
    const wait = () => {};
    process.on("SIGINT", wait);
    let text = "";
    let shown = 0;
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ part) => {
      text += part;
      // Only whole lines, because another part may print at the same time.
      const end = text.lastIndexOf("\n") + 1;
      stdout.write(text.slice(shown, end));
      shown = end;
    });
    child.on("error", (error) => console.error(error.message));
    child.on("close", (code) => {
      process.off("SIGINT", wait);
      resolve({ code: code ?? 1, text });
    });
  });
}

/**
 * Adds a failure if a part printed no counts or ended with an error.
 *
 * @param {Counts | undefined} counts
 * @param {number} code
 * @returns {Counts}
 */
function counted(counts, code) {
  if (counts === undefined) return { passed: 0, failed: 1 };
  return { passed: counts.passed, failed: Math.max(counts.failed, code === 0 ? 0 : 1) };
}

/**
 * A range of seeds for the simulation. The ranges of different seeds do not overlap.
 *
 * @param {number} seed
 * @param {number} count
 */
function range(seed, count) {
  const first = (seed - 1) * 1_000_000 + 1;
  return `${first}..${first + count - 1}`;
}

/** @param {string} name */
function option(name) {
  const at = rest.indexOf(name);
  return at < 0 ? undefined : rest[at + 1];
}
