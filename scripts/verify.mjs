// @ts-check
/**
 * npm run verify:…: what tests cannot show, on the production scripts.
 *
 * `verify:sim`, `verify:search` and `verify:faults` are one command each, with their own arguments. `verify:pr`,
 * `verify:nightly` and `verify:release` are several in a row, bounded in time, with one report. They close with
 * `N passed, N failed`: the sum of what each part counts.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { argv, exit } from "node:process";

import { build, dependencies, node, redisServer, root } from "./setup.mjs";

/**
 * One command of a run.
 *
 * @typedef {object} Step
 * @property {string} part  folder under verify/src
 * @property {string[]} args
 */

/** A day has a number, so that every night plays something new and its seed can be said in one number. */
const TODAY = Math.floor(Date.now() / 86_400_000);

/**
 * What each run is made of.
 *
 * A change is always judged by the same seeds: if it turns red, the change did it, and not the date.
 *
 * @type {Record<string, (seed: number, minutes: number | undefined) => { seed: number, steps: Step[] }>}
 */
const RUNS = {
  pr: (seed) => ({
    seed,
    steps: [
      { part: "search", args: ["--bound", "small"] },
      { part: "simulation", args: ["--seeds", range(seed, 2_000)] },
      { part: "teeth", args: ["--quick"] },
      { part: "faults", args: ["--quick", "--seconds", "8", "--seed", String(seed)] },
    ],
  }),
  nightly: (seed, minutes = 60) => ({
    seed,
    steps: [
      { part: "search", args: ["--bound", "small"] },
      { part: "simulation", args: ["--seeds", range(seed, 60_000)] },
      { part: "teeth", args: [] },
      { part: "faults", args: ["--minutes", String(minutes), "--seconds", "15", "--seed", String(seed)] },
    ],
  }),
  release: (seed, minutes = 240) => ({
    seed,
    steps: [
      { part: "search", args: ["--bound", "large", "--states", "8000000"] },
      { part: "simulation", args: ["--seeds", range(seed, 200_000)] },
      { part: "teeth", args: [] },
      {
        part: "faults",
        args: [
          ...["--minutes", String(minutes), "--seconds", "60", "--seed", String(seed)],
          ...["--subject", "holdfast,redlock,redis-semaphore,@verrou/core,simple-redis-mutex"],
        ],
      },
    ],
  }),
};

const [what = "simulation", ...rest] = argv.slice(2);
await dependencies();
await build();
const plan = RUNS[what];
exit(plan === undefined ? await one({ part: what, args: rest }) : await several(what, plan));

/** @param {Step} step */
async function one({ part, args }) {
  const program = `verify/dist/${part}/main.js`;
  const server = part === "faults" ? { HOLDFAST_REDIS_SERVER: await redisServer() } : {};
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

  let passed = 0;
  let failed = 0;
  for (const { part, args } of steps) {
    if (!existsSync(join(root, `verify/src/${part}/main.ts`))) {
      console.log(`NOT RUN ${part}: it is not there`);
      continue;
    }
    console.log(`\n— ${part} ${args.join(" ")}`);
    const result = join(report, `${part}.json`);
    const where = part === "faults" ? ["--report", report] : ["--json", result];
    const code = await one({ part, args: [...args, ...where] });
    const counts = part === "faults" ? countsOf(join(report, "totals.json")) : countsOf(result);
    passed += counts?.passed ?? 0;
    failed += Math.max(counts?.failed ?? 1, code === 0 ? 0 : 1);
  }
  console.log(`\nreport: verify/reports/${name}/index.html`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

/**
 * What a part says of itself; undefined if it died before it could.
 *
 * @param {string} file
 * @returns {{ passed: number, failed: number } | undefined}
 */
function countsOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

/**
 * Seeds that no other number of a run has.
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
