// @ts-check
/**
 * What the command costs: `holdfast run` beside the bare command that it runs, and `--help`, both beside Node itself.
 *
 *     node packages/cli/scripts/startup.mjs [--runs 20] [--node PROGRAM]
 *
 * Measures what is published (scripts/pack.mjs), with a server of its own on this host, each program started anew and in
 * turn, in the environment that cron gives: one variable more can cost Node itself as long as all of this (with
 * NODE_EXTRA_CA_CERTS, Node 20 reads every certificate before it begins). A table for people, and no test: a machine that
 * does something else as well is slower, which the processor's time shows less than the clock's.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { pack } from "./pack.mjs";
import { startServer } from "./server.mjs";

/** Of Linux, in which it counts what ended children took. */
const TICK_MS = 10;

/** @param {string} flag */
const given = (flag) => (argv.includes(flag) ? argv[argv.indexOf(flag) + 1] : undefined);
const runs = Number(given("--runs") ?? 20);
/** Another release of Node than the one that measures. */
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
    // The shell that ends the command if `holdfast` is killed: part of what the rows of `run` count.
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
      // The first turn waits for the server, fills the caches of the disk and writes the command's own.
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

/** The kernel counts in ticks, so only the mean of many runs says something. @param {readonly { cpuMs: number }[]} all */
function meanCpuMs(all) {
  return all.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / all.length;
}

/** Of all children that have ended, and theirs; not a number where there is no /proc. */
function childrenCpuMs() {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
