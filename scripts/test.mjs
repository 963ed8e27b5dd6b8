// @ts-check
/**
 * npm test [-- FILTER and options of vitest]: sets up what is missing, then runs the tests that a contributor runs after each change.
 * With a FILTER, all tests whose path contains it, of any tier.
 *
 *     npm test -- --rest      the tests that npm test leaves out; `npm run test:all` runs them too
 *
 * The last line is `N passed, N failed`. A skipped test is always named, and is a failure where CI=true.
 */
import { argv, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, postgres, redisServer } from "./setup.mjs";

const args = argv.slice(2).filter((arg) => arg !== "--rest");
const isRest = args.length < argv.length - 2;
const isFiltered = args.some((arg) => !arg.startsWith("-"));
const tier = isRest ? "rest" : isFiltered ? "" : "contributor";

await dependencies();
await build();
const redis = await redisServer();
if (tier !== "contributor") await postgres();
exit(await runTests(args, { HOLDFAST_REDIS_SERVER: redis, HOLDFAST_TIER: tier }));
