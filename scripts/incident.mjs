// @ts-check
/**
 * npm run incident: plays an incident on real processes, checks that one command and one console page answer each of its
 * questions, and writes packages/cli/docs/incident.md and the pictures in docs/console. `npm run test:cli` plays it too,
 * and writes nothing.
 *
 * The last line is `N passed, N failed`.
 */
import { argv, env, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, onPath, redisServer, stop } from "./setup.mjs";

await dependencies();
await build();
const redis = await redisServer();
if (onPath("chromium") === undefined && env.HOLDFAST_CHROMIUM === undefined)
  stop("chromium is missing; install it (apt-get install chromium), or set HOLDFAST_CHROMIUM to a binary");
exit(
  await runTests(["--config", "packages/cli/long-tests/vitest.config.ts", "incident.test", ...argv.slice(2)], {
    HOLDFAST_REDIS_SERVER: redis,
    HOLDFAST_INCIDENT: "write",
  }),
);
