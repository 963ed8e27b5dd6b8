/** Checks that every test named in interop/coverage.md exists. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PAGE = readFileSync(`${ROOT}interop/coverage.md`, "utf8");

/** Existing files that a name on the page can mean. */
function filesOf(name: string): string[] {
  const [family = "", ...rest] = name.split("/");
  const inFamily = rest.join("/");
  const tests = `${ROOT}packages/interop/tests`;
  const folders: Readonly<Record<string, string>> = {
    real: `${ROOT}interop/tests/${inFamily}`,
    timestamp: `${tests}/timestamp/${inFamily}`,
    redlock: `${ROOT}packages/holdfast/tests/redlock/${inFamily}`,
  };
  const path = folders[family] ?? `${tests}/redisson/${name}`;
  return [`${path}.test.ts`, `${path}.ts`].filter((file) => existsSync(file));
}

/** The files that the page names, with the strings quoted after them. */
const quotes = PAGE.split("\n")
  .filter((line) => line.startsWith("| "))
  .flatMap((line) =>
    [...line.matchAll(/`([a-z-]+(?:\/[a-z.-]+)?)`((?:[,; ]*“[^”]+”)+)/g)].map(([, name = "", quoted = ""]) => ({
      name,
      texts: [...quoted.matchAll(/“([^”]+)”/g)].map(([, text = ""]) => text),
    })),
  );

test("the page names more than 150 tests", () => {
  expect(quotes.length).toBeGreaterThan(150);
});

test("every test that the page names exists", () => {
  const missing = quotes.flatMap(({ name, texts }) => {
    const all = filesOf(name).map((file) => readFileSync(file, "utf8"));
    if (all.length === 0) return [`there is no file ${name}`];
    return texts.filter((text) => !all.some((source) => source.includes(text))).map((text) => `${name}: ${text}`);
  });
  expect(missing).toEqual([]);
});

/** Whether the page has a row with that name and a test. */
const hasTest = (text: string, row: string): boolean =>
  text.split("\n").some((line) => line.startsWith(`| ${row} | `) && line.includes("`"));

test.each([
  ["A", 10],
  ["B", 12],
  ["C", 17],
  ["D", 9],
  ["E", 9],
])("the page names a test for each row from %s1 to %i", (article, last) => {
  for (let row = 1; row <= last; row += 1) expect(hasTest(PAGE, `${article}${row}`), `${article}${row}`).toBe(true);
});

test("the page names a test for each Redisson defect that is not copied", () => {
  const [, rows = ""] = PAGE.split("## Wrong in Redisson");
  for (let row = 1; row <= 21; row += 1) expect(hasTest(rows, `${row}`), `${row}`).toBe(true);
});
