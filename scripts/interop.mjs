// @ts-check
/**
 * npm run test:interop [-- vitest arguments]: builds missing or outdated peers in other languages, then runs the tests that
 * share locks with them on real servers.
 *
 * If a toolchain is missing, the command fails and says how to install it; with CI=true it installs it. No test is skipped.
 * The last line is `N passed, N failed`.
 */
import { argv, exit } from "node:process";

import { buildPeers, toolchains } from "./peers.mjs";
import { runTests } from "./run-tests.mjs";
import { build, dependencies, redisServer } from "./setup.mjs";

await dependencies();
await build();
const redis = await redisServer();
await toolchains();
await buildPeers();
exit(await runTests(["--config", "interop/vitest.config.ts", ...argv.slice(2)], { HOLDFAST_REDIS_SERVER: redis }));
