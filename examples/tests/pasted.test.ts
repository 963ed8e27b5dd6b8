/** The programs that users paste from a page run unchanged in a new Node process on a real server, with the shown output. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FIRST_LOCK = "examples/readme/first-lock.ts";

/** A program on a page: the file name to save it under, its code, and the output that the page shows. */
interface Pasted {
  readonly name: string;
  readonly code: string;
  readonly output: string;
}

const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The programs on a page: each block that begins with a file name and is followed by a block of output. */
function programsOf(path: string): Pasted[] {
  const blocks = /^```(?:ts|js)\n\/\/ (\S+)\n([\s\S]*?)\n```\n\n```text\n([\s\S]*?\n)```$/gm;
  return [...textOf(path).matchAll(blocks)].map(([, name = "", code = "", output = ""]) => ({
    // The program is valid as TypeScript and as JavaScript.
    name: name === FIRST_LOCK ? "pay.mjs" : name,
    code,
    output,
  }));
}

let redis: RedisServer;
let folder: string;
beforeAll(async () => {
  redis = await startRedis();
  // Inside the checkout, so that packages resolve as in a project that has installed them.
  mkdirSync(join(ROOT, "examples/dist"), { recursive: true });
  folder = mkdtempSync(join(ROOT, "examples/dist/pasted-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await redis.stop();
});

test.each(["README.md", "README.zh-CN.md"])(
  "the first block of code in %s after the installation is a whole file",
  (path) => {
    const [, code] = /^```ts\n([\s\S]*?)\n```$/m.exec(textOf(path)) ?? [];
    expect(code).toBe(`// ${FIRST_LOCK}\n${textOf(FIRST_LOCK).trimEnd()}`);
  },
);

describe.each([
  ["README.md", 1],
  ["README.zh-CN.md", 1],
  ["docs/getting-started.md", 4],
  ["docs/zh/getting-started.md", 4],
])("a program in %s", (path, count) => {
  const programs = programsOf(path);

  test("is found", () => {
    expect(programs).toHaveLength(count);
  });

  test.each(programs)("prints the output on the page: $name", { timeout: 120_000 }, async ({ name, code, output }) => {
    const file = join(folder, name);
    writeFileSync(file, `${code}\n`);
    const env = { ...process.env, REDIS_URL: redis.url };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
    expect(stdout).toBe(output);
  });
});
