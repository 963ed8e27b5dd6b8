// @ts-check
/**
 * npm test [-- FILTER and options of vitest]: sets up what is missing, then runs the tests to run after each change.
 * With a FILTER, it runs all tests whose path contains it, of any tier.
 *
 *     npm test -- --rest      the tests that npm test leaves out; `npm run test:all` runs them too
 *
 * The last line is `N passed, N failed`. Skipped tests are always listed, and count as failures if CI=true.
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
