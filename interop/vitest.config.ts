/** The tests with real peers. `npm run test:interop` builds the peers and runs these tests. */
import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import own from "../vitest.config.js";

const { setupFiles = [], expect = {} } = own.test ?? {};

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  ...(own.resolve === undefined ? {} : { resolve: own.resolve }),
  test: {
    include: ["interop/tests/**/*.test.ts"],
    setupFiles,
    expect,
    pool: "forks",
    // Many files start a JVM. More JVMs at a time would only wait for each other.
    maxWorkers: 2,
    // Most concurrent tests wait for leases to end.
    maxConcurrency: 10,
    // Peers have their own timeouts of ten seconds and more, and a JVM needs time to start.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    allowOnly: env.CI !== "true",
  },
});
