/**
 * Configures the tests that need a terminal, a browser or minutes. `npm run test:cli` builds the packages and starts
 * them.
 */
import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import own from "../../../vitest.config.js";

const { setupFiles = [], expect = {} } = own.test ?? {};

export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  ...(own.resolve === undefined ? {} : { resolve: own.resolve }),
  test: {
    include: ["packages/{cli,console}/long-tests/**/*.test.ts"],
    setupFiles,
    expect,
    pool: "forks",
    // Simulated hosts and browsers are separate processes that also need CPU cores.
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    allowOnly: env.CI !== "true",
  },
});
