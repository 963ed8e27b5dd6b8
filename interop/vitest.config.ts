/** The tests with real peers; `npm run test:interop` builds those and starts this. */
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
    // A JVM for each file that needs one; more of them at a time would only wait for each other.
    maxWorkers: 2,
    // Most of what runs concurrently waits for leases to end.
    maxConcurrency: 10,
    // Peers have their own patience, ten seconds and more, and a JVM needs its time to start.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    allowOnly: env.CI !== "true",
  },
});
