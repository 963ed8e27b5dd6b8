import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { anchorsOf, deadLinks } from "./links.js";
import { allFiles, ROOT, type Source } from "./sources.js";

const exists = (path: string): boolean => existsSync(join(ROOT, path));

test("links between documents lead to files and headings that exist", () => {
  expect(deadLinks(allFiles(), exists)).toEqual([]);
});

test("a dead link is reported, with its document", () => {
  const of = (text: string): Source[] => [
    { path: "docs/a.md", text: `# A b\n\n${text}\n` },
    { path: "docs/b.md", text: "# B `c` · `D_E`\n" },
  ];
  const known = (path: string): boolean => ["docs/a.md", "docs/b.md", "docs"].includes(path);
  for (const good of ["[x](b.md#b-c--d_e)", "[x](#a-b)", "[x](../docs)", "[x](https://a.example)", "`[x](no.md)`"]) {
    expect(deadLinks(of(good), known), good).toEqual([]);
  }
  expect(deadLinks(of("[x](no.md)"), known)).toEqual(["docs/a.md: no file no.md"]);
  expect(deadLinks(of("[x](b.md#e)"), known)).toEqual(["docs/a.md: no heading b.md#e"]);
  expect(deadLinks(of("[x](#e)"), known)).toEqual(["docs/a.md: no heading #e"]);
  expect(deadLinks(of("![x](../../c.png)"), known)).toEqual(["docs/a.md: no file ../../c.png"]);
});

test("a heading that stands twice has two anchors", () => {
  expect([...anchorsOf("# A\n\n## A\n\n```sh\n# b\n```\n## 选主 (x)\n")]).toEqual(["a", "a-1", "选主-x"]);
});
