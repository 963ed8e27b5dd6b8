// @ts-check
/**
 * npm run test:busy [-- times] [files]: runs the tests that once failed on a slow machine, next to 16 processes that
 * keep the cores busy. Every run must pass: a test must not depend on the speed of the machine.
 *
 * Without arguments it runs the files below five times. The last line says how many runs passed.
 *
 *     npm run test:busy -- 3 --tier      the same for everything that `npm test` runs
 */
import { spawn } from "node:child_process";
import { argv, execPath, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, postgres, redisServer } from "./setup.mjs";

const PROCESSES = 16;
const holdfast = "packages/holdfast/tests";
const FILES = [
  ...["barrier", "count-down-latch", "election", "multi-lock"].map((kind) => `${holdfast}/properties/${kind}.test.ts`),
  ...["cut-off", "frozen", "lifetime", "script-flush", "stalled", "traffic"].map(
    (one) => `${holdfast}/faults/${one}.test.ts`,
  ),
  `${holdfast}/permissions/cluster.test.ts`,
  "packages/recipes/tests/codec.test.ts",
  "packages/recipes/tests/soak.test.ts",
  "packages/nestjs/tests/legacy-decorators/faults.test.ts",
  "packages/cli/tests/verbs/elect.test.ts",
  "packages/cli/tests/verbs/show-and-release.test.ts",
  "tests/tidy/imports.test.ts",
];

const isTier = argv.includes("--tier");
const [first, ...rest] = argv.slice(2).filter((arg) => arg !== "--tier");
const isNumber = /^\d+$/.test(first ?? "");
const times = isNumber ? Number(first) : 5;
const named = isNumber || first === undefined ? rest : [first, ...rest];

await dependencies();
await build();
const redis = await redisServer();
await postgres();
const load = Array.from({ length: PROCESSES }, () => spawn(execPath, ["--eval", "for (;;);"], { stdio: "ignore" }));
const stop = () => {
  for (const child of load) child.kill("SIGKILL");
};
process.on("exit", stop);
let red = 0;
for (let run = 1; run <= times; run += 1) {
  console.log(`run ${run} of ${times}, next to ${PROCESSES} busy processes`);
  const startedAtMs = performance.now();
  const files = named.length > 0 ? named : FILES;
  const settings = { HOLDFAST_REDIS_SERVER: redis, HOLDFAST_TIER: isTier ? "contributor" : "" };
  if ((await runTests(isTier ? [] : files, settings)) !== 0) red += 1;
  console.log(`run ${run} took ${Math.round((performance.now() - startedAtMs) / 1000)} s`);
}
stop();
console.log(`${times - red} of ${times} runs passed`);
exit(red === 0 ? 0 : 1);
