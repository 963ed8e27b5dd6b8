import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { documents } from "../../scripts/reference-tables.mjs";
import { ROOT } from "./sources.js";

test.each([...documents()])("the tables of %s say what the source says (npm run fix writes them)", (path, text) => {
  expect(readFileSync(join(ROOT, path), "utf8")).toBe(text);
});

test.each([...documents()])("every row of %s has a meaning", (_path, text) => {
  const rows = [...text.matchAll(/^\| `.*` \| .* \| (.*) \|$/gm)];
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter(([, meaning]) => meaning?.trim() === "")).toEqual([]);
});
