/** What is published: a few files that do what the many compiled ones do, small, and quick to import. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { execPath } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { pack } from "../scripts/pack.mjs";

/**
 * Of everything that `import "holdfast"` loads, minified and compressed. Twelve kinds with their Lua and the texts of their
 * errors; see docs/benchmarks.md for what takes how much, and docs/adr/061 for why. A change that needs more says so here.
 *
 * Since other entry points share its core, that is a file of its own: two files compress less well than one, by 700 bytes.
 * Elections count their terms and say how they stand: 400 bytes. To tell of calls that end without a lease, and which call it was,
 * takes 500 more. In what order the files stand in the bundle makes up to 1 500 bytes: 900 of these came with a file that was split.
 * Telemetry hears to which server a command went, and a crowd has larger batches, and nobody queues for a renewal until it is late: 500 bytes.
 * An acquire tells where it is asked for, and a lock on which of its sides: 100 bytes.
 * What is adopted while all closes is given back, `close` tells of calls of `once` as they are, and no name that is no signal's is listened for: 200 bytes.
 * What is left of a batch whose loss is heard late comes first and its holder is told, and who comes behind a pause keeps place, deadline and signal: 150 bytes.
 * Versions of the protocol are marked and refused, and a client id that two processes share is warned of: 1 700 bytes.
 * A grant by message is confirmed, an inbox is checked by an echo, and callers that time out share an inspection: 4 150 bytes.
 * Servers of a quorum are asked how long leases are, and an error says what replaces a dead connection: 2 600 bytes.
 * Confirmations have one timer for all: 350 bytes.
 */
const MOST_BYTES = 80_500;

const home = fileURLToPath(new URL("..", import.meta.url));
const packed = mkdtempSync(join(home, ".cache-pack-"));

beforeAll(() => pack(packed));
afterAll(() => rmSync(packed, { recursive: true }));

const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
const entries: readonly string[] = Object.values<{ default?: string }>(manifest.exports).flatMap(
  (entry) => entry.default ?? [],
);

test.each(entries.filter((entry) => !entry.includes("testing")))(
  "%s exports what the compiled file does",
  async (entry) => {
    const [published, compiled] = await Promise.all(
      [packed, home].map((folder) => import(pathToFileURL(join(folder, entry)).href)),
    );
    expect(Object.keys(published).toSorted()).toEqual(Object.keys(compiled).toSorted());
  },
);

test("every entry has its declarations, and nothing of the repository comes along", () => {
  for (const entry of entries) expect(existsSync(join(packed, entry.replace(/\.js$/, ".d.ts"))), entry).toBe(true);
  expect(readdirSync(packed).toSorted()).toEqual(["dist", "package.json"]);
  const published = JSON.parse(readFileSync(join(packed, "package.json"), "utf8"));
  expect(published).toMatchObject({ name: "holdfast", exports: manifest.exports });
  expect(published.dependencies ?? {}).toEqual({});
});

test("it locks on a real server, and its errors are those of every entry point", async () => {
  const server = await startRedis();
  try {
    const code = `
      import { AcquireTimeoutError, createHoldfast, LockError } from ${JSON.stringify(pathToFileURL(join(packed, "dist/index.js")).href)};
      import { createHoldfastOn } from ${JSON.stringify(pathToFileURL(join(packed, "dist/simulation.js")).href)};
      import { Redis } from "ioredis";
      const redis = new Redis({ port: ${server.port} });
      const holdfast = createHoldfast({ redis });
      const lease = await holdfast.mutex("a").acquire();
      const error = await holdfast.mutex("a").acquire({ waitMs: 0 }).catch((reason) => reason);
      console.log(error instanceof AcquireTimeoutError, error instanceof LockError, await lease.release(), typeof createHoldfastOn);
      await holdfast.close();
      redis.disconnect();`;
    const said = execFileSync(execPath, ["--input-type=module", "--eval", code], { cwd: home, encoding: "utf8" });
    expect(said.trim()).toBe("true true released function");
  } finally {
    await server.stop();
  }
});

test("what takes Node long to load is not loaded with it", () => {
  const loaded = [...loadedByMain()].map((file) => readFileSync(join(packed, "dist", file), "utf8")).join("\n");
  const modules = new Set([...loaded.matchAll(/\b(?:from|import)\s*"(node:[^"]+)"/g)].map(([, name]) => name));
  expect(modules).toContain("node:diagnostics_channel");
  for (const slow of ["node:crypto", "node:process", "node:net", "node:stream"]) expect(modules).not.toContain(slow);
});

test("it is no larger than is accepted", () => {
  const loaded = loadedByMain();
  expect(loaded.size).toBeGreaterThan(1);
  const bytes = [...loaded].reduce((sum, file) => sum + gzipSync(readFileSync(join(packed, "dist", file))).length, 0);
  expect(bytes).toBeLessThan(MOST_BYTES);
});

test("importing it is a small part of importing a client", () => {
  // Both in turn on this machine, the best of some tries, since a busy machine makes either slow at times.
  const best = { holdfast: Infinity, client: Infinity };
  const from = { holdfast: pathToFileURL(join(packed, "dist/index.js")).href, client: "ioredis" };
  for (let i = 0; i < 30 && !(i >= 3 && best.holdfast < best.client / 2); i += 1) {
    for (const which of ["holdfast", "client"] as const) {
      const code = `const beganMs = performance.now(); await import(${JSON.stringify(from[which])}); console.log(performance.now() - beganMs)`;
      const tookMs = Number(
        execFileSync(execPath, ["--input-type=module", "--eval", code], { cwd: home, encoding: "utf8" }),
      );
      best[which] = Math.min(best[which], tookMs);
    }
  }
  expect(best.holdfast).toBeLessThan(best.client / 2);
});

/** The files that `import "holdfast"` loads. What other entry points alone share is not among them. */
function loadedByMain(): ReadonlySet<string> {
  const loaded = new Set(["index.js"]);
  for (const file of loaded) {
    const text = readFileSync(join(packed, "dist", file), "utf8");
    for (const [, shared = ""] of text.matchAll(/\bfrom\s*"\.\/(shared-[^"]+)"/g)) loaded.add(shared);
  }
  return loaded;
}
