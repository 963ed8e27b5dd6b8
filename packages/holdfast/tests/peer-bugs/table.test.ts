/** Checks that README.md and the tests cover every row, and that every named test exists. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
const GROUPS: Readonly<Record<string, number>> = { A: 20, B: 11, C: 7, D: 9, E: 5, F: 7, O: 14 };

const listed = [...readFileSync(join(here, "README.md"), "utf8").matchAll(/^\| ([A-FO]\d+) \| .+ \| (.+) \|$/gm)].map(
  ([, row = "", where = ""]) => ({ row, where }),
);
const tested = readdirSync(here)
  .filter((file) => file.endsWith(".test.ts"))
  .flatMap((file) => [...readFileSync(join(here, file), "utf8").matchAll(/^test\("([A-FO]\d+): /gm)])
  .map(([, row = ""]) => row);

test("every row appears exactly once, in the table or in a test of this folder", () => {
  const rows = Object.entries(GROUPS).flatMap(([group, count]) =>
    Array.from({ length: count }, (_, i) => `${group}${i + 1}`),
  );
  expect([...listed.map(({ row }) => row), ...tested].toSorted()).toEqual(rows.toSorted());
});

test.each(listed.filter(({ where }) => !where.startsWith("later: ")))("the test named for $row exists", ({ where }) => {
  const [, file = "", name = ""] = /^`([^`]+)`: (.+)$/.exec(where) ?? [];
  expect(textOf(join(here, "..", file)).includes(name), `${file} has a test "${name}"`).toBe(true);
  expect(name.length).toBeGreaterThan(10);
});

/** The text of a file, or of all TypeScript files in a folder. */
function textOf(path: string): string {
  if (!statSync(path).isDirectory()) return readFileSync(path, "utf8");
  const files = readdirSync(path).filter((file) => file.endsWith(".ts"));
  return files.map((file) => readFileSync(join(path, file), "utf8")).join("\n");
}
