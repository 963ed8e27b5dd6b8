/** The tests that judge mutants of core/: those that need no server and no real time. */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("../..", import.meta.url));
const source = (path: string): string => root + path;

export default defineConfig({
  root,
  resolve: {
    alias: [
      { find: /^holdfast\/testing$/, replacement: source("packages/holdfast/src/testing/index.ts") },
      { find: /^holdfast\/simulation$/, replacement: source("packages/holdfast/src/simulation.ts") },
      { find: /^holdfast$/, replacement: source("packages/holdfast/src/index.ts") },
      { find: /^@holdfast\/embedded$/, replacement: source("packages/embedded/src/index.ts") },
    ],
  },
  test: {
    include: ["packages/holdfast/tests/unit/**/*.test.ts"],
    // It reads and builds files of the checkout, where the mutants are not.
    exclude: ["packages/holdfast/tests/unit/build-lua.test.ts"],
    maxWorkers: 1,
    // A machine that is busy is no reason to call a mutant killed.
    testTimeout: 20_000,
  },
});
