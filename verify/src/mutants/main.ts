/**
 * Mutation tests of core/: makes one small change at a time and counts the changes that the unit tests detect.
 *
 *     npm run verify:mutants [-- time.ts hold.ts] [--minutes 60] [--jobs 2] [--rest] [--write-docs]
 *     npm run verify:mutants -- --report FILE [--write-docs]
 *
 * Without names it takes every file of core/. Stryker runs once per file, and the score is recorded when the run ends.
 * When the time is over, the current file is not recorded and counts as failed. `--report` records a JSON report that
 * Stryker has already written. `--rest` tests only mutants that survived the last run and code that has changed since.
 * A score that is too low is recorded too, and fails the command.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process, { execPath, exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type KeptScores, kept, laidOut, scoreTable, withScores } from "./document.js";
import { type FileScore, LEAST_SCORE, merged, scoresOf, tooLow } from "./score.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "60" },
    jobs: { type: "string", default: "2" },
    report: { type: "string" },
    rest: { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
  },
});

const root = fileURLToPath(new URL("../../..", import.meta.url));
const CORE = "packages/holdfast/src/core";
const REPORT = join(root, ".cache/stryker/mutation.json");
const RESULTS = join(root, "verify/results");
const KEPT = join(RESULTS, "mutation-score.json");
const DOCUMENT = join(root, "verify/docs/mutation.md");
/** How long Stryker may take to stop its workers and delete its copy of the sources. */
const ENDING_MS = 10_000;

function say(line: string): void {
  stdout.write(`${line}\n`);
}

function filesOfCore(): string[] {
  return readdirSync(join(root, CORE))
    .filter((file) => file.endsWith(".ts"))
    .toSorted();
}

function read(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

function scoresKept(): readonly FileScore[] {
  try {
    return (read(KEPT) as KeptScores).scores;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Records the scores. @returns how many of them are too low */
function record(scores: readonly FileScore[]): number {
  const low = tooLow(scores);
  for (const { file, score } of low) say(`${file}: ${score.toFixed(1)} % is less than ${LEAST_SCORE} %`);
  const all = filesOfCore();
  const known = merged(scoresKept(), scores).filter(({ file }) => all.includes(file));
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(KEPT, laidOut(kept(known)));
  return low.length;
}

/** Runs Stryker on one file. @returns whether it finished in time */
function mutate(file: string, withinMs: number): Promise<boolean> {
  const stryker = join(root, "node_modules/@stryker-mutator/core/bin/stryker.js");
  const config = "verify/stryker/stryker.config.json";
  const words = [stryker, "run", config, "--mutate", `${CORE}/${file}`, "--concurrency", values.jobs];
  if (!values.rest) words.push("--force");
  return new Promise((resolve) => {
    // Run in a separate process group, so that a signal reaches the workers too.
    const child = spawn(execPath, words, { cwd: root, stdio: ["ignore", "inherit", "inherit"], detached: true });
    const end = (signal: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch (error) {
        // ESRCH: the process has already exited.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    };
    const interrupt = (): void => end("SIGINT");
    let isLate = false;
    let killing: NodeJS.Timeout | undefined;
    const deadline = setTimeout(() => {
      isLate = true;
      end("SIGINT");
      killing = setTimeout(() => end("SIGKILL"), ENDING_MS);
    }, withinMs);
    process.on("SIGINT", interrupt);
    const settle = (isDone: boolean): void => {
      clearTimeout(deadline);
      clearTimeout(killing);
      process.off("SIGINT", interrupt);
      resolve(isDone && !isLate);
    };
    child.on("error", (error) => {
      say(error.message);
      settle(false);
    });
    child.on("close", (code) => settle(code === 0));
  });
}

async function measure(files: readonly string[]): Promise<{ passed: number; failed: number }> {
  const endsAtMs = performance.now() + Number(values.minutes) * 60_000;
  let [passed, failed] = [0, 0];
  for (const file of files) {
    const restMs = endsAtMs - performance.now();
    if (restMs <= 0) {
      say(`NOT RUN ${file}: the time is up`);
      continue;
    }
    if (await mutate(file, restMs)) {
      // A file with only types has no mutants and therefore no score.
      const scores = scoresOf(read(REPORT)).filter((score) => score.file === file);
      const low = record(scores);
      failed += low;
      passed += scores.length - low;
    } else {
      say(`${file}: not measured completely`);
      failed += 1;
    }
  }
  return { passed, failed };
}

async function main(): Promise<number> {
  const all = filesOfCore();
  const unknown = positionals.filter((file) => !all.includes(file));
  if (unknown.length > 0) throw new Error(`no file of core/: ${unknown.join(", ")}`);
  let counts: { passed: number; failed: number };
  if (values.report === undefined) counts = await measure(positionals.length === 0 ? all : positionals);
  else {
    const scores = scoresOf(read(values.report));
    const failed = record(scores);
    counts = { passed: scores.length - failed, failed };
  }
  if (values["write-docs"]) {
    const table = scoreTable(scoresKept(), all);
    writeFileSync(DOCUMENT, withScores(readFileSync(DOCUMENT, "utf8"), table));
  }
  say(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}

exit(await main());
