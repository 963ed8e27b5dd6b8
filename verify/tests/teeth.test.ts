/** The teeth match the sources, and their catchers exist. The command checks that they catch the mistakes. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { RULES } from "../src/search/rules.js";
import { KINDS, KINDS_APART } from "../src/simulation/kinds/table.js";
import { BUGS } from "../src/teeth/bugs.js";
import { isKnown } from "../src/teeth/tampering.js";
import { TEETH } from "../src/teeth/teeth.js";
import type { Tooth } from "../src/teeth/tooth.js";
import { patched, sourceOf } from "../src/teeth/workbench.js";

const document = readFileSync(fileURLToPath(new URL("../docs/teeth.md", import.meta.url)), "utf8");
/** The required number of bugs; those that need several servers do not count. */
const FEWEST_BUGS = 25;

test("every id is unique, and every bug that a tooth names is in the reference", () => {
  expect(new Set(TEETH.map(({ id }) => id)).size).toBe(TEETH.length);
  expect(new Set(BUGS.map(({ id }) => id)).size).toBe(BUGS.length);
  const known = BUGS.map(({ id }) => id);
  expect(TEETH.flatMap(({ bugs }) => bugs).filter((id) => !known.includes(id))).toEqual([]);
});

test("every historical bug that can be made now has a tooth", () => {
  const restated = new Set(TEETH.flatMap(({ bugs }) => bugs));
  expect(BUGS.filter(({ id, later }) => restated.has(id) === (later !== undefined))).toEqual([]);
  expect(restated.size).toBeGreaterThanOrEqual(FEWEST_BUGS);
});

describe("a mistake can still be made:", () => {
  test.each(TEETH)("$id", ({ patches, tampering, catcher }: Tooth) => {
    const texts = new Map<string, string>();
    for (const change of patches) {
      const before = texts.get(change.file) ?? sourceOf(change.file);
      texts.set(change.file, patched(before, change));
      expect(texts.get(change.file)).not.toBe(before);
    }
    expect(patches.length > 0 || tampering !== undefined || catcher.by === "search").toBe(true);
    if (tampering !== undefined) expect(isKnown(tampering)).toBe(true);
  });
});

describe("the check that must notice it exists:", () => {
  test.each(TEETH)("$id", ({ catcher }) => {
    switch (catcher.by) {
      case "simulation":
        expect([...KINDS, ...KINDS_APART].map(({ name }) => name)).toContain(catcher.kind);
        return;
      case "search":
        expect(RULES.map(({ id }) => id)).toContain(catcher.rule);
        return;
      default:
        // The full name of a contract test begins with its kind and store.
        expect(sourceOf(`packages/holdfast/tests/${catcher.file}`)).not.toBe("");
    }
  });
});

test("verify/docs/teeth.md has a line for every bug, and for every mistake that is caught", () => {
  const rows = document.split("\n").filter((line) => /^\| (B\d\d|–) \|/.test(line));
  for (const { id } of BUGS)
    expect(
      rows.some((row) => row.startsWith(`| ${id} |`)),
      id,
    ).toBe(true);
  for (const { mistake } of TEETH)
    expect(
      rows.some((row) => row.includes(`| ${mistake} |`)),
      mistake,
    ).toBe(true);
  expect(rows.filter((row) => /\*\*(not caught|no tooth)\*\*/.test(row))).toEqual([]);
});
