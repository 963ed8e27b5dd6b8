/** Checks that each TypeScript and SQL block in the documents is part of a file that runs and ends with assertions. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

/** Folders in which every page except the index shows code. */
const FOLDERS = ["docs/kinds/", "docs/recipes/"];
const DOCUMENTS = [
  "README.md",
  "docs/fencing.md",
  "docs/locks-in-plain-words.md",
  "docs/zh/plain-words.md",
  "docs/zh/migration.md",
  "docs/interop.md",
  "docs/interop-timestamps.md",
  "docs/interop-leaving.md",
  "docs/pausing.md",
  "docs/looking.md",
  "docs/passing-a-lease.md",
  "docs/redisson.md",
  "docs/redisson-permits.md",
  ...FOLDERS.flatMap((folder) =>
    readdirSync(new URL(`../../${folder}`, import.meta.url)).flatMap((file) =>
      file === "README.md" ? [] : [`${folder}${file}`],
    ),
  ),
];

/** A fenced block, and the line that names its file. */
interface Block {
  readonly marker: string;
  readonly code: string;
}

function textOf(path: string): string {
  return readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");
}

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(?:ts|typescript|sql)\n(.*)\n([\s\S]*?)\n```$/gm)].map(
    ([, marker = "", code = ""]) => ({
      marker,
      code,
    }),
  );
}

/** Languages of blocks: those that are compared with files, and those that need no file, such as commands and output. */
const LANGUAGES = ["ts", "typescript", "sql", "sh", "console", "text", "json", ""];

/** Lists the problems of a document's blocks. `read` returns the text of a file. */
function complaints(markdown: string, read: (path: string) => string): string[] {
  // Every second fence closes a block.
  const openings = [...markdown.matchAll(/^[ \t]*```(.*)$/gm)].filter((_, at) => at % 2 === 0);
  const unread = openings.flatMap(([line, language = ""]) =>
    line.startsWith("```") && LANGUAGES.includes(language) ? [] : [`nothing runs what is in: ${line}`],
  );
  const unlike = blocksOf(markdown).flatMap(({ marker, code }) => {
    const [, path] = /^(?:\/\/|--) (examples\/(?:readme|kinds|fencing|nestjs|stock)\/[a-z-]+\.ts)$/.exec(marker) ?? [];
    if (path === undefined) return [`no file is named by: ${marker}`];
    return `\n${read(path)}`.includes(`\n${code}\n`) ? [] : [`not a piece of ${path}: ${code.split("\n")[0]}`];
  });
  return [...unread, ...unlike];
}

describe("a block of TypeScript or SQL", () => {
  test.each(DOCUMENTS)("in %s is part of a file that runs", (path) => {
    const markdown = textOf(path);
    expect(blocksOf(markdown).length).toBeGreaterThan(0);
    expect(complaints(markdown, textOf)).toEqual([]);
  });

  test("without a file, or different from its file, is reported", () => {
    const read = (): string => "const a = 1;\nconst b = 2;\n";
    const block = (...lines: string[]): string => ["```ts", ...lines, "```"].join("\n");
    const marker = "// examples/readme/x.ts";
    expect(complaints(block(marker, "const b = 2;"), read)).toEqual([]);
    expect(complaints(block("const a = 1;", "const b = 2;"), read)).toHaveLength(1);
    expect(complaints(block(marker, "const b = 3;"), read)).toHaveLength(1);
    expect(complaints(block(marker, "b = 2;"), read)).toHaveLength(1);
  });

  test("in another language, or with unusual fences, is reported", () => {
    const block = (opening: string): string => `${opening}\nconst a = 1;\n${opening.replace(/\S+$/, "```")}\n`;
    const read = (): string => "const a = 1;\n";
    for (const opening of ["```js", "```javascript", "```ts title", "  ```ts"]) {
      expect(complaints(block(opening), read), opening).toHaveLength(1);
    }
    expect(complaints(block("```sh"), read)).toEqual([]);
  });
});

// Some files load frameworks, which takes long on a busy machine.
describe("a file", { timeout: 120_000 }, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    vi.stubEnv("REDIS_URL", redis.url);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await redis.stop();
  });

  const filesIn = (folder: string): string[] =>
    readdirSync(fileURLToPath(new URL(`../${folder}`, import.meta.url))).filter((file) => file.endsWith(".ts"));

  test.each(filesIn("readme"))("in examples/readme, %s, runs to its end", async (file) => {
    await import(`../readme/${file.replace(/\.ts$/, ".js")}`);
  });

  test.each(filesIn("kinds"))("in examples/kinds, %s, runs to its end", async (file) => {
    await import(`../kinds/${file.replace(/\.ts$/, ".js")}`);
  });

  test.each(filesIn("nestjs"))("in examples/nestjs, %s, runs to its end", async (file) => {
    await import(`../nestjs/${file.replace(/\.ts$/, ".js")}`);
  });
});
