// @ts-check
/**
 * Measures the cost of the command: `holdfast run` compared with the bare command that it runs, and `--help`, both
 * compared with Node itself.
 *
 *     node packages/cli/scripts/startup.mjs [--runs 20] [--node PROGRAM]
 *
 * Measures the published package (scripts/pack.mjs) with a separate server on this host. The programs are started in
 * turn, in the environment that cron provides. The environment matters: with NODE_EXTRA_CA_CERTS, Node 20 reads every
 * certificate at its start, which can take as long as everything measured here. Prints a table and is not a test,
 * because other load makes the machine slower. That affects CPU time less than wall-clock time.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { pack } from "./pack.mjs";
import { startServer } from "./server.mjs";

/** The unit in which Linux counts the CPU time of ended children. */
const TICK_MS = 10;

/** @param {string} flag */
const given = (flag) => (argv.includes(flag) ? argv[argv.indexOf(flag) + 1] : undefined);
const runs = Number(given("--runs") ?? 20);
/** The Node program to measure, which may be another release than the one that runs this script. */
const node = given("--node") ?? execPath;
const folder = mkdtempSync(join(tmpdir(), "holdfast-startup-"));
const { url, stop } = await startServer(folder);
try {
  await pack(join(folder, "cli"));
  const main = join(folder, "cli/dist/main.cjs");
  const run = [main, "run", "startup", "--connect-timeout", "30s", "-r", url];
  const asCron = { PATH: env.PATH ?? "", HOME: env.HOME ?? "" };
  const uncached = { ...asCron, NODE_DISABLE_COMPILE_CACHE: "1" };
  /** @type {Record<string, { words: readonly [string, ...string[]], env?: Record<string, string> }>} */
  const programs = {
    true: { words: ["true"] },
    // The shell that ends the command if `holdfast` is killed. The rows of `run` include its cost.
    "the guard of run": { words: ["sh", "-c", "read -r word; exit 0"] },
    "node -e 0": { words: [node, "-e", "0"] },
    "holdfast --help": { words: [node, main, "--help"] },
    "holdfast run -n -- true": { words: [node, ...run, "-n", "--", "true"] },
    "holdfast run -- true": { words: [node, ...run, "--", "true"] },
    "  without its code cache": { words: [node, ...run, "--", "true"], env: uncached },
  };
  /** @type {Record<string, { wallMs: number, cpuMs: number }[]>} */
  const times = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
  for (let i = -1; i < runs; i += 1) {
    for (const [name, { words, env: own = asCron }] of Object.entries(programs)) {
      const [file, ...args] = words;
      const before = { wallMs: performance.now(), cpuMs: childrenCpuMs() };
      const { status, stderr } = spawnSync(file, args, { encoding: "utf8", env: own });
      const took = { wallMs: performance.now() - before.wallMs, cpuMs: childrenCpuMs() - before.cpuMs };
      if (status !== 0) throw new Error(`${name} exited with ${status}: ${stderr}`);
      // Skip the first turn, which waits for the server, fills the disk caches and writes the command's code cache.
      if (i >= 0) times[name]?.push(took);
      await sleep(5);
    }
  }
  const bareMs = median(times.true ?? []);
  const nodeMs = median(times["node -e 0"] ?? []);
  const nodeCpuMs = meanCpuMs(times["node -e 0"] ?? []);
  const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  console.log(`${runs} runs in turn, Node ${stdout.trim()}, load ${loadavg()[0]?.toFixed(1)}; ms`);
  console.log("                            median  over true  over node    best  processor  x node");
  for (const [name, all] of Object.entries(times)) {
    const ms = median(all);
    const best = Math.min(...all.map(({ wallMs }) => wallMs));
    const cpuMs = meanCpuMs(all);
    const columns = [ms, ms - bareMs, ms - nodeMs, best, cpuMs].map((value) => value.toFixed(0).padStart(9));
    console.log(`${name.padEnd(25)} ${columns.join("")} ${(cpuMs / nodeCpuMs).toFixed(1).padStart(9)}`);
  }
} finally {
  await stop();
  rmSync(folder, { recursive: true, force: true });
}

/** @param {readonly { wallMs: number }[]} all */
function median(all) {
  const sorted = all.map(({ wallMs }) => wallMs).sort((a, b) => a - b);
  return ((sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0)) / 2;
}

/**
 * The kernel counts in ticks, so only the mean of many runs is meaningful.
 *
 * @param {readonly { cpuMs: number }[]} all
 */
function meanCpuMs(all) {
  return all.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / all.length;
}

/** The CPU time of all ended children and their descendants; NaN on systems without /proc. */
function childrenCpuMs() {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
