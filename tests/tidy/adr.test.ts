import { expect, test } from "vitest";
import { allFiles } from "./sources.js";

const FOLDER = "docs/adr/";

test("every decision record begins with `**In short:**` and its line in the index (docs/adr/README.md)", () => {
  const records = allFiles().filter(({ path }) => path.startsWith(FOLDER) && path.endsWith(".md"));
  const index = records.find(({ path }) => path === `${FOLDER}README.md`)?.text ?? "";
  const lines = new Map(
    [...index.matchAll(/^\| \[\d+\]\((.+\.md)\) \| (.+) \|$/gm)].map(([, name = "", line = ""]) => [name, line]),
  );
  const beginnings = records.flatMap(({ path, text }) => {
    const name = path.slice(FOLDER.length);
    return name === "README.md" ? [] : [[name, /^# .+\n\n\*\*In short:\*\* (.+)\n/.exec(text)?.[1]] as const];
  });
  expect(beginnings.length).toBeGreaterThan(40);
  expect(new Map(beginnings)).toEqual(lines);
});
