// @ts-check
/**
 * npm run test:long [-- FILTER and options of vitest]: runs at full size, one file after the other: the recipes with killed
 * processes, the PostgreSQL writers and the random programs of each kind. `npm test` runs the same files at a smaller size,
 * and some of them check durations only here. FILTER is part of a file's name, or `!` and the part of a name to leave out.
 *
 * The last line is `N passed, N failed`.
 */
import { argv, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, redisServer, stop } from "./setup.mjs";

/** The full size of each file, and the variable that sets it. */
const SIZES = [
  { file: "recipes/tests/soak", variable: "HOLDFAST_SOAK_KEYS", size: 10_000 },
  { file: "recipes/tests/fence", variable: "HOLDFAST_SOAK_WRITES", size: 10_000 },
  { file: "pg/tests/pg", variable: "HOLDFAST_SOAK_WRITES", size: 10_000 },
  { file: "recipes/tests/versioned-processes", variable: "HOLDFAST_VERSIONED_TIMES", size: 200 },
  { file: "recipes/tests/cache-processes", variable: "HOLDFAST_CACHE_PROCESSES", size: 50 },
  { file: "recipes/tests/coalesce-processes", variable: "HOLDFAST_SOAK_CALLS", size: 20_000 },
  { file: "recipes/tests/keyed-processes", variable: "HOLDFAST_SOAK_EVENTS", size: 100 },
  { file: "recipes/tests/worker-slot-processes", variable: "HOLDFAST_SOAK_SLOTS", size: 1 },
  { file: "recipes/tests/scheduled-soak", variable: "HOLDFAST_SOAK_TICKS", size: 60 },
  { file: "redlock-compat/tests/contention", variable: "HOLDFAST_CONTENTION_SECONDS", size: 15 },
  ...[
    ...["barrier", "condition", "count-down-latch", "election", "multi-lock", "read-write-lock", "reentrant-mutex"],
    "semaphore",
  ].map((kind) => ({ file: `holdfast/tests/properties/${kind}`, variable: "HOLDFAST_PROPERTY_RUNS", size: 1_000 })),
];

const args = argv.slice(2);
const options = args.filter((arg) => arg.startsWith("-"));
const filters = args.filter((arg) => !/^[-!]/.test(arg));
const without = args.filter((arg) => arg.startsWith("!")).map((arg) => arg.slice(1));
const chosen = SIZES.map(({ file, ...size }) => ({ ...size, path: `packages/${file}.test.ts` }))
  .filter(({ path }) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
  .filter(({ path }) => !without.some((filter) => path.includes(filter)));
if (chosen.length === 0) stop(`no test file with a full size matches ${args.join(" or ")}`);

await dependencies();
await build();
const redis = await redisServer();
const sizes = Object.fromEntries(chosen.map(({ variable, size }) => [variable, String(size)]));
exit(
  await runTests(["--no-file-parallelism", ...options, ...chosen.map(({ path }) => path)], {
    HOLDFAST_REDIS_SERVER: redis,
    ...sizes,
  }),
);
