// @ts-check
/**
 * npm run test:cli [-- vitest arguments]: the tests of the command line and the console that need more than a server:
 * a terminal (tmux), a browser (chromium), killed hosts, or minutes.
 *
 * A missing tool is an error that says how to install it; with CI=true it is installed. No test is skipped.
 * The last line is `N passed, N failed`.
 */
import { argv, env, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { aptInstall, build, dependencies, mayInstall, onPath, redisServer, stop } from "./setup.mjs";

/** Programs that the tests start, each with its Debian package and a variable that can name another binary. */
const TOOLS = [
  { program: "tmux", from: "tmux", variable: undefined },
  { program: "chromium", from: "chromium", variable: "HOLDFAST_CHROMIUM" },
  { program: "zsh", from: "zsh", variable: undefined },
  { program: "fish", from: "fish", variable: undefined },
];

await dependencies();
await build();
const redis = await redisServer();
await tools();
exit(
  await runTests(["--config", "packages/cli/long-tests/vitest.config.ts", ...argv.slice(2)], {
    HOLDFAST_REDIS_SERVER: redis,
  }),
);

async function tools() {
  const missing = TOOLS.filter(({ program, variable }) => onPath(program) === undefined && !env[variable ?? ""]);
  if (missing.length === 0) return;
  const packages = missing.map(({ from }) => from);
  if (env.CI === "true" && onPath("apt-get") !== undefined && mayInstall()) await aptInstall(...packages);
  const still = missing.filter(({ program }) => onPath(program) === undefined);
  if (still.length === 0) return;
  const names = still.map(({ program, variable }) => `${program}${variable === undefined ? "" : ` (or ${variable})`}`);
  stop(`${names.join(", ")} missing; install with: sudo apt-get install ${still.map(({ from }) => from).join(" ")}`);
}
