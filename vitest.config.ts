import { readdirSync, readFileSync } from "node:fs";
import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

function source(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** The source file of each entry point of each package, by the name under which it is imported. */
function entryPoints(): Array<{ find: RegExp; replacement: string }> {
  return readdirSync(source("packages")).flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(source(`packages/${folder}/package.json`), "utf8")) as {
      readonly name: string;
      readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
    };
    return Object.entries(manifest.exports).flatMap(([entry, built]) => {
      if (typeof built === "string" || manifest.name === "@holdfast/cli") return [];
      const file = built.default.replace("./dist/", "src/").replace(/\.js$/, ".ts");
      return [
        { find: new RegExp(`^${manifest.name}${entry.slice(1)}$`), replacement: source(`packages/${folder}/${file}`) },
      ];
    });
  });
}

const ALL = [
  "packages/*/tests/**/*.test.ts",
  "tests/**/*.test.ts",
  "examples/tests/**/*.test.ts",
  "bench/tests/**/*.test.ts",
  "verify/tests/**/*.test.ts",
];
const RECIPES =
  "cache,coalesce,codec,counter,fence,keyed,lead,left-behind,once,once-round,once-survey,refusal,scheduled";
/**
 * What `npm test` runs: unit tests, the contracts on the embedded store and on a real server with ioredis and node-redis, one file
 * for each recipe and integration, and the rules of this repository. `npm run test:all` runs the rest.
 */
const CONTRIBUTOR = [
  "packages/holdfast/tests/{foreign-lock,lua,peer-bugs,period-marker,permits,properties,protocol,regressions,stores,structure,unit}/**/*.test.ts",
  "packages/holdfast/tests/contract/{embedded,ioredis-6,matrix,node-redis-6}.test.ts",
  "packages/holdfast/tests/package.test.ts",
  "packages/embedded/tests/**/*.test.ts",
  `packages/recipes/tests/{${RECIPES},versioned,worker-slot}.test.ts`,
  "packages/recipes/tests/lua/*.test.ts",
  "packages/{bullmq,node-cron}/tests/{bullmq,node-cron}.test.ts",
  "packages/http/tests/{bodies,table}.test.ts",
  "packages/interop/tests/**/{coverage,names,refusals,wire}.test.ts",
  "packages/nestjs/tests/**/{application,locked,standard-decorators}.test.ts",
  "packages/telemetry/tests/**/*.test.ts",
  "tests/tidy/**/*.test.ts",
];
/** Undefined for all tests; `contributor`, or `rest` for the others. */
const tier = env.HOLDFAST_TIER;

export default defineConfig({
  // Tests see one copy of the library, its source, by whatever name they import it.
  resolve: { alias: entryPoints() },
  test: {
    include: tier === "contributor" ? CONTRIBUTOR : ALL,
    exclude: ["**/node_modules/**", ...(tier === "rest" ? CONTRIBUTOR : [])],
    setupFiles: [source("tests/support/patience.ts")],
    expect: { poll: { timeout: 60_000, interval: 20 } },
    pool: "forks",
    // Tests wait for timers and servers more than they compute, so twice the cores of a small machine.
    maxWorkers: 4,
    // What hangs is told late; what is only slow, on a machine with much else to do, is not told at all.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    passWithNoTests: false,
    allowOnly: env.CI !== "true",
  },
});
