/** The built site in a real browser; `npm run docs -- --check` builds and starts this. */
import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["site/tests/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    allowOnly: env.CI !== "true",
  },
});
