/**
 * What a cron job pays for its lock: the processor time of the published `holdfast run`, compared with that of Node alone.
 * The programs are started in turn, in the environment that cron provides.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { target } from "../results.js";
import type { Entry, Prepared } from "./entry.js";
import type { Measurement } from "./measurement.js";

/** The kernel counts processor time in ticks, so a single start says little. */
const STARTS = 10;
const TICK_MS = 10;
const NODE = "node -e 0";
const RUN = "holdfast run x -- true";
const GUARD = ["sh", "-c", "read -r word; exit 0"] as const;
/** A variable of Node. */
const UNCACHED = { NODE_DISABLE_COMPILE_CACHE: "1" };
const PACK = new URL("../../../packages/cli/scripts/pack.mjs", import.meta.url).href;

export const startup: Measurement = {
  name: "startup",
  title: () => `start of the command line, mean of ${STARTS} starts a run`,
  seconds: 0,
  figures: [
    { name: "processor time", unit: "ms", digits: 1, better: "less" },
    { name: "time", unit: "ms", digits: 1, better: "less" },
  ],

  entries: () => [
    { name: NODE, role: "yardstick", prepare: async () => prepared([process.execPath, "-e", "0"], () => {}) },
    command("holdfast --help", () => ["--help"]),
    command(RUN, (port) => [...runOn(port), "--", "true"]),
    command(`${RUN}, without its code cache`, (port) => [...runOn(port), "--", "true"], UNCACHED),
    command("holdfast run x -n -- true", (port) => [...runOn(port), "-n", "--", "true"]),
    // The shell that ends the command if `holdfast` is killed. The rows of `run` include its cost.
    { name: "the guard of run", role: "own", yardstick: NODE, prepare: async () => prepared(GUARD, () => {}) },
  ],

  targets: (results) => [
    target("start of holdfast run", results.ratio(RUN, NODE, "processor time"), { atMost: 2 }, `× ${NODE}`),
  ],
};

function runOn(port: number): readonly string[] {
  return ["run", "x", "--connect-timeout", "30s", "-r", `redis://127.0.0.1:${port}`];
}

function command(
  name: string,
  words: (port: number) => readonly string[],
  env: Readonly<Record<string, string>> = {},
): Entry {
  return {
    name,
    role: "own",
    yardstick: NODE,
    async prepare({ server }) {
      const { main, remove } = await packedCommand();
      return prepared([process.execPath, main, ...words(server.port)], remove, env);
    },
  };
}

/** The command as users install it. */
export async function packedCommand(): Promise<{ readonly main: string; readonly remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-command-"));
  const { pack } = (await import(PACK)) as { pack(target: string): Promise<void> };
  await pack(folder);
  return { main: join(folder, "dist/main.cjs"), remove: () => rmSync(folder, { recursive: true }) };
}

function prepared(
  [program, ...words]: readonly [string, ...string[]],
  remove: () => void,
  more: Readonly<Record<string, string>> = {},
): Prepared {
  const { PATH = "", HOME = "" } = process.env;
  const start = (): void => {
    const { status, stderr } = spawnSync(program, words, { encoding: "utf8", env: { PATH, HOME, ...more } });
    if (status !== 0) throw new Error(`it exited with ${status}: ${stderr}`);
  };
  start(); // writes the command's code cache
  return {
    async run() {
      const [cpuMs, beganMs] = [childrenMs(), performance.now()];
      for (let i = 0; i < STARTS; i += 1) start();
      return { values: [(childrenMs() - cpuMs) / STARTS, (performance.now() - beganMs) / STARTS] };
    },
    close: async () => remove(),
  };
}

/** Processor time of all ended children and their children. NaN on systems without /proc. */
function childrenMs(): number {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
