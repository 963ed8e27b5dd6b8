// @ts-check
/**
 * npm test [-- vitest arguments]: sets up what is missing, then runs every test of the repository.
 *
 * The last line is `N passed, N failed`. A skipped test is always named, and is a failure where CI=true.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, exit } from "node:process";

import { build, dependencies, node, postgres, redisServer, tools } from "./setup.mjs";
import { tally } from "./tally.mjs";

await dependencies();
await build();
const redis = await redisServer();
await postgres();

const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
const report = join(folder, "report.json");
const args = argv.slice(2);
const reporter = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=default"];
const code = await node([tools.vitest, "run", ...reporter, "--reporter=json", `--outputFile.json=${report}`, ...args], {
  HOLDFAST_REDIS_SERVER: redis,
});

const { passed, failed, skipped } = tally(read(report), code);
rmSync(folder, { recursive: true });

// A name filter makes vitest call all other tests skipped; that is what was asked for.
const isNarrowed = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
if (!isNarrowed) for (const name of skipped) console.log(`skipped: ${name}`);
const red = failed + (env.CI === "true" ? skipped.length : 0);
console.log(`${passed} passed, ${red} failed`);
exit(red > 0 || passed === 0 ? code || 1 : code);

/** @param {string} file */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined; // vitest ended before it could write a report
  }
}
