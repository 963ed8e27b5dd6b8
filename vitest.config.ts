import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

function source(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

export default defineConfig({
  resolve: {
    // Tests see one copy of the library, its source, by whatever name they import it.
    alias: [
      { find: /^holdfast\/internal$/, replacement: source("packages/holdfast/src/internal.ts") },
      { find: /^holdfast\/admin$/, replacement: source("packages/holdfast/src/admin/index.ts") },
      { find: /^holdfast\/express$/, replacement: source("packages/holdfast/src/integrations/express/index.ts") },
      { find: /^holdfast\/fastify$/, replacement: source("packages/holdfast/src/integrations/fastify/index.ts") },
      { find: /^holdfast\/hono$/, replacement: source("packages/holdfast/src/integrations/hono/index.ts") },
      { find: /^holdfast\/bullmq$/, replacement: source("packages/holdfast/src/integrations/bullmq/index.ts") },
      { find: /^holdfast\/nestjs$/, replacement: source("packages/holdfast/src/integrations/nestjs/index.ts") },
      { find: /^holdfast\/node-cron$/, replacement: source("packages/holdfast/src/integrations/node-cron/index.ts") },
      { find: /^holdfast\/period-marker$/, replacement: source("packages/holdfast/src/period-marker/index.ts") },
      { find: /^holdfast\/otel$/, replacement: source("packages/holdfast/src/integrations/otel/index.ts") },
      { find: /^holdfast\/prometheus$/, replacement: source("packages/holdfast/src/integrations/prometheus/index.ts") },
      { find: /^holdfast\/testing$/, replacement: source("packages/holdfast/src/testing/index.ts") },
      { find: /^holdfast\/pg$/, replacement: source("packages/holdfast/src/integrations/pg/index.ts") },
      { find: /^holdfast\/recipes$/, replacement: source("packages/holdfast/src/recipes/index.ts") },
      { find: /^holdfast\/redisson$/, replacement: source("packages/holdfast/src/interop/redisson/index.ts") },
      { find: /^holdfast\/diagnosis$/, replacement: source("packages/holdfast/src/diagnosis.ts") },
      { find: /^holdfast\/simulation$/, replacement: source("packages/holdfast/src/simulation.ts") },
      { find: /^holdfast\/timestamp$/, replacement: source("packages/holdfast/src/interop/timestamp/index.ts") },
      { find: /^holdfast$/, replacement: source("packages/holdfast/src/index.ts") },
      { find: /^@holdfast\/embedded$/, replacement: source("packages/embedded/src/index.ts") },
    ],
  },
  test: {
    include: [
      "packages/*/tests/**/*.test.ts",
      "tests/**/*.test.ts",
      "examples/tests/**/*.test.ts",
      "bench/tests/**/*.test.ts",
      "verify/tests/**/*.test.ts",
    ],
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
