/** Puts the report into a directory: the page for people, and the verdicts for programs. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { env, version as nodeVersion } from "node:process";
import { fileURLToPath } from "node:url";
import { totalsOf } from "../summary.js";
import type { CellVerdict } from "../verdict.js";
import type { ReportData, RunFacts } from "./data.js";
import { page } from "./page.js";
import { readResults } from "./results.js";

/** Results that are kept between runs. */
const KEPT_RESULTS = fileURLToPath(new URL("../../../results", import.meta.url));

/** Writes `index.html`, `verdicts.json` without pictures, and `totals.json`. @returns the path of the page */
export function writeReport(directory: string, verdicts: readonly CellVerdict[], facts: RunFacts): string {
  mkdirSync(directory, { recursive: true });
  const writtenAt = new Date().toISOString();
  const versions = versionsOf(facts);
  const parts = readResults([KEPT_RESULTS, directory]);
  const file = join(directory, "index.html");
  writeFileSync(file, page({ facts, verdicts, parts, versions, writtenAt }));
  const bare = verdicts.map((verdict) => ({
    ...verdict,
    breaches: verdict.breaches.map(({ property, lockName, message }) => ({ property, lockName, message })),
  }));
  writeFileSync(
    join(directory, "verdicts.json"),
    `${JSON.stringify({ writtenAt, versions, facts, verdicts: bare })}\n`,
  );
  writeFileSync(join(directory, "totals.json"), `${JSON.stringify(totalsOf(verdicts))}\n`);
  return file;
}

/** The versions of everything that was run. */
export function versionsOf({ subjects }: RunFacts): Readonly<Record<string, string>> {
  const holdfast = subjects.find(({ name }) => name === "holdfast");
  return { holdfast: holdfast?.version ?? "unknown", node: nodeVersion, redis: redisVersion() };
}

/** Reads the results that `writeReport` wrote to a directory. @throws Error  there is no report */
export function readReport(directory: string): Pick<ReportData, "facts" | "verdicts" | "versions"> {
  return JSON.parse(readFileSync(join(directory, "verdicts.json"), "utf8")) as ReportData;
}

function redisVersion(): string {
  const text = execFileSync(env.HOLDFAST_REDIS_SERVER ?? "redis-server", ["--version"], { encoding: "utf8" });
  return /\bv=(\S+)/.exec(text)?.[1] ?? text.trim();
}
