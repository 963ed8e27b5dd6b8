/** Makes a mistake in a workbench, and checks that its catcher notices it for the right reason. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SearchTask, Sighting, SimulationTask } from "./probe.js";
import type { BySearch, BySimulation, ByTest, Tooth } from "./tooth.js";
import type { Ended, Workbench } from "./workbench.js";

/** The number of seeds after which a mistake counts as unnoticed. */
export const SEEDS = 600;
/** A time limit, because a broken library may run forever. */
const LIMIT_MS = 120_000;
const TESTS = "packages/holdfast/tests/";

/** The result for a mistake. */
export interface Result {
  readonly isCaught: boolean;
  /** What caught it, in a few words; or why it was not caught. */
  readonly how: string;
  /** The number of seeds or steps; 0 for tests. */
  readonly count: number;
}

/** Makes the mistake, runs the catcher, and undoes the mistake. Never rejects. */
export async function bite(workbench: Workbench, tooth: Tooth): Promise<Result> {
  try {
    await workbench.apply(tooth.patches);
    return await look(workbench, tooth);
  } catch (error) {
    return missed(error instanceof Error ? error.message : String(error));
  } finally {
    workbench.restore();
  }
}

function look(workbench: Workbench, { catcher, tampering }: Tooth): Promise<Result> {
  switch (catcher.by) {
    case "simulation":
      return bySimulation(workbench, catcher, tampering);
    case "search":
      return bySearch(workbench, catcher);
    default:
      return byTest(workbench, catcher);
  }
}

async function bySimulation(workbench: Workbench, catcher: BySimulation, tampering?: string): Promise<Result> {
  const seen = await probe(workbench, { catcher, tampering, seeds: SEEDS });
  if (typeof seen === "string") return missed(seen);
  if (seen.property === "") return missed(`no seed up to ${SEEDS} violates ${catcher.finds.join(" or ")}`);
  return { isCaught: true, how: `${seen.property}: ${seen.text}`, count: seen.count };
}

async function bySearch(workbench: Workbench, catcher: BySearch): Promise<Result> {
  const seen = await probe(workbench, { catcher, isControl: false });
  if (typeof seen === "string") return missed(seen);
  if (!seen.text.startsWith(catcher.finds)) return missed(`found "${seen.text}" instead of "${catcher.finds}"`);
  return { isCaught: true, how: seen.text, count: seen.count };
}

async function byTest(workbench: Workbench, catcher: ByTest): Promise<Result> {
  const tests = await runTests(workbench, [catcher]);
  if (typeof tests === "string") return missed(tests);
  const ran = tests.find(({ fullName }) => fullName.endsWith(catcher.test));
  if (ran === undefined) return missed("the test did not run");
  if (ran.status !== "failed") return missed("the test passes");
  const [message = ""] = (ran.failureMessages[0] ?? "").split("\n");
  // A copy that cannot be loaded fails every test, which shows nothing.
  if (/SyntaxError|ReferenceError|Failed to (resolve|load)/.test(message)) return missed(message);
  return { isCaught: true, how: message, count: 0 };
}

function missed(how: string): Result {
  return { isCaught: false, how, count: 0 };
}

/** Runs a simulation or a search in the copy. @returns what it found, or what went wrong */
export async function probe(workbench: Workbench, task: SimulationTask | SearchTask): Promise<Sighting | string> {
  const ended = await workbench.node(["verify/dist/teeth/probe.js", JSON.stringify(task)], LIMIT_MS);
  if (ended.code !== 0) return whyNot("the probe", ended);
  return JSON.parse(ended.stdout.trim().split("\n").at(-1) ?? "") as Sighting;
}

/** How a test ended, as reported by the runner. */
export interface TestEnd {
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages: readonly string[];
}

/** Runs only these tests in the copy. @returns how they ended, or what went wrong */
export async function runTests(
  workbench: Workbench,
  catchers: readonly ByTest[],
): Promise<readonly TestEnd[] | string> {
  const report = join(workbench.folder, "report.json");
  rmSync(report, { force: true });
  const names = catchers.map(({ test }) => `${test.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
  const ended = await workbench.node(
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--config=vitest.config.ts",
      "--maxWorkers=1",
      "--reporter=json",
      `--outputFile=${report}`,
      `--testNamePattern=${names.join("|")}`,
      ...new Set(catchers.map(({ file }) => TESTS + file)),
    ],
    LIMIT_MS,
  );
  if (ended.code === undefined) return whyNot("the test run", ended);
  try {
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
      testResults: readonly { readonly assertionResults: readonly TestEnd[] }[];
    };
    return testResults.flatMap(({ assertionResults }) => assertionResults);
  } catch {
    return whyNot("the test run", ended);
  }
}

function whyNot(what: string, { code, stdout, stderr }: Ended): string {
  if (code === undefined) return `${what} did not end within ${LIMIT_MS / 1_000} s`;
  const lines = (stderr || stdout).trim().split("\n");
  return `${what} ended with ${code}: ${lines.find((line) => line.includes("Error")) ?? lines.at(-1)}`;
}
