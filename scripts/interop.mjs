// @ts-check
/**
 * npm run test:interop [-- vitest arguments]: builds the peers in other languages that are missing or stale, then runs the
 * tests that share locks with them on real servers.
 *
 * A missing toolchain is named in one line, with how to get it; where CI=true it is installed. Nothing is skipped for it.
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
