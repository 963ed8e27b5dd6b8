// @ts-check
/**
 * npm run check: all checks of the code that need no test run.
 *
 * Every step runs even if another fails, and shows its output only if it fails.
 */
import { spawnSync } from "node:child_process";
import { execPath, exit } from "node:process";

import { dependencies, root, tools } from "./setup.mjs";
import { codeLines, longFiles } from "./sizes.mjs";

const LEGACY_DECORATORS = "packages/nestjs/tests/legacy-decorators/tsconfig.json";

/** @type {ReadonlyArray<readonly [string, readonly string[]]>} */
const STEPS = [
  ["scripts have valid headers and bodies", [tools.buildLua]],
  ["sources compile", [tools.tsc, "-b"]],
  ["tests and scripts compile", [tools.tsc, "-p", "tsconfig.tests.json"]],
  ["tests with the older kind of decorators compile", [tools.tsc, "-p", LEGACY_DECORATORS]],
  ["lint, with types", [tools.oxlint, "--type-aware", "--deny-warnings"]],
  ["format and lint", [tools.biome, "check", "--error-on-warnings"]],
  ["spelling, and words that are no longer used", [tools.cspell, "lint", "--no-progress", "--no-summary"]],
];

await dependencies();

let failed = 0;
for (const [name, args] of STEPS) {
  const startedAtMs = performance.now();
  const { status, stdout, stderr } = spawnSync(execPath, args, { cwd: root, encoding: "utf8" });
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`${status === 0 ? "✓" : "✗"} ${name} (${seconds} s)`);
  if (status !== 0) {
    failed += 1;
    console.log(`${stdout}${stderr}`.trimEnd());
  }
}

for (const { part, files, lines } of codeLines()) console.log(`· ${part}: ${files} files, ${lines} lines of code`);
for (const { file, lines } of longFiles()) console.log(`· ${file} has ${lines} lines: is this two things?`);
if (failed > 0)
  console.log(
    "npm run fix repairs the format, the generated scripts and the accepted public API; fix the rest by hand",
  );
console.log(`${STEPS.length - failed} passed, ${failed} failed`);
exit(failed === 0 ? 0 : 1);
