import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { placeOf, withLinksOfSite } from "../pages.mjs";

const always = (): boolean => true;

describe("a page of the site", () => {
  it.each([
    ["README.md", "index.md"],
    ["README.zh-CN.md", "zh/index.md"],
    ["docs/README.md", "contents.md"],
    ["docs/kinds/barrier.md", "kinds/barrier.md"],
    ["docs/recipes/README.md", "recipes/index.md"],
    ["docs/adr/001-a.md", undefined],
    ["packages/cli/README.md", undefined],
  ])("%s stands at %s", (path, place) => {
    expect(placeOf(path)).toBe(place);
  });

  it.each([
    ["README.md", "[safe](docs/safety.md#a)", "[safe](./safety.md#a)"],
    ["docs/recipes/once.md", "[all](README.md)", "[all](./index.md)"],
    ["docs/recipes/once.md", "[first](../../README.md#kinds)", "[first](../index.md#kinds)"],
    ["docs/safety.md", "[`code`](../packages/a.ts)", "`code` (`packages/a.ts`)"],
    ["docs/safety.md", "[two\nlines](errors.md)", "[two\nlines](./errors.md)"],
    ["docs/safety.md", "[web](https://example.com)", "[web](https://example.com)"],
    ["docs/safety.md", "[here](#below)", "[here](#below)"],
    ["docs/safety.md", "![picture](console/a.png)", "![picture](./console/a.png)"],
    ["docs/safety.md", "```md\n[in](code.md)\n```", "```md\n[in](code.md)\n```"],
  ])("of %s turns %s into %s", (from, text, expected) => {
    expect(withLinksOfSite(text, from, always)).toBe(expected);
  });

  it.each(readdirSync(new URL("../../docs/zh/", import.meta.url)))(
    "in Chinese, %s, has only code that an English page has, where it is tried",
    (name) => {
      const chinese = codeOf(`docs/zh/${name}`);
      const english = readdirSync(new URL("../../docs/", import.meta.url))
        .filter((file) => file.endsWith(".md"))
        .flatMap((file) => codeOf(`docs/${file}`));
      expect(english).toEqual(expect.arrayContaining(chinese));
    },
  );

  it("names a link that leads to no file", () => {
    expect(() => withLinksOfSite("[a](gone.md)", "docs/safety.md", () => false)).toThrow(
      "docs/safety.md: the link gone.md leads to no file; name one that exists",
    );
  });
});

function codeOf(path: string): string[] {
  const text = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  return [...text.matchAll(/^```[\s\S]*?^```$/gm)].map(([block]) => block);
}
