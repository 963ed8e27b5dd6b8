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

export default defineConfig({
  // Tests see one copy of the library, its source, by whatever name they import it.
  resolve: { alias: entryPoints() },
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
