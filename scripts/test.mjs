// @ts-check
/**
 * npm test [-- vitest arguments]: sets up what is missing, then runs every test of the repository.
 *
 * The last line is `N passed, N failed`. A skipped test is always named, and is a failure where CI=true.
 */
import { argv, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, postgres, redisServer } from "./setup.mjs";

await dependencies();
await build();
const redis = await redisServer();
await postgres();
exit(await runTests(argv.slice(2), { HOLDFAST_REDIS_SERVER: redis }));
