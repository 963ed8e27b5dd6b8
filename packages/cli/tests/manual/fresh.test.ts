/** Tests that the manual page and the completions match the table of verbs. */
import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { manualFiles } from "../../scripts/build-manual.mjs";
import { flagsOf } from "../../scripts/flags.mjs";
import { COMMON_HELP, COMMON_OPTIONS } from "../../src/frame/flags.js";
import { generalHelp, helpOf } from "../../src/frame/help.js";
import { VERBS } from "../../src/frame/verbs-table.js";
import { HELP_COLUMNS } from "../../src/frame/wrapped.js";

// The test imports every verb, which can take long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const PACKAGE = new URL("../../", import.meta.url);

function generated(): ReturnType<typeof manualFiles> {
  const { version }: { version: string } = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8"));
  return manualFiles({ VERBS, COMMON_OPTIONS, COMMON_HELP, general: generalHelp(), version });
}

describe("the generated manual page and completions", () => {
  it("match the committed files", async () => {
    for (const [path, text] of await generated()) {
      expect(readFileSync(new URL(path, PACKAGE), "utf8"), `${path} is stale; repair it with: npm run fix`).toBe(text);
    }
  });

  it("fit a terminal of 80 columns, and so does the help", async () => {
    const tooLong = (text: string, most: number): readonly string[] =>
      text.split("\n").filter((line) => line.length > most);
    expect(tooLong(generalHelp(), HELP_COLUMNS)).toEqual([]);
    expect(tooLong(COMMON_HELP, HELP_COLUMNS)).toEqual([]);
    for (const { load } of Object.values(VERBS)) {
      const verb = await load?.();
      if (verb === undefined) continue;
      expect(tooLong(await helpOf(verb), HELP_COLUMNS), verb.name).toEqual([]);
      expect(tooLong(`usage: ${verb.usage}`.replaceAll("\n", "\n       "), 80), verb.name).toEqual([]);
    }
    // The manual page indents these texts by three columns and fills all others.
    expect((await generated()).find(([path]) => path.startsWith("man/"))?.[1]).toContain("\n.in 3\n.nf\n");
  });

  it("give a negative result the meaning that docs/cli.md gives it", () => {
    const docs = readFileSync(new URL("../../docs/cli.md", PACKAGE), "utf8");
    const meaning = /^\| 1 \| (.+) \|$/m.exec(docs)?.[1];
    expect(meaning).toBeDefined();
    expect(generalHelp().replaceAll(/\s+/g, " ")).toContain(` 1 ${meaning} 64 `);
  });

  it("contain only flags that the help describes", async () => {
    for (const [name, { load }] of Object.entries(VERBS)) {
      if (load === undefined) continue;
      const verb = await load();
      const help = await helpOf(verb);
      for (const flag of flagsOf(verb.options, help)) {
        if (flag.name !== "") expect(help, `${name} --${flag.name}`).toContain(`--${flag.name}`);
      }
    }
  });

  it("take words, files and values from the help", () => {
    const help =
      "  -o, --out F   a file\n      --sort a|b  (a); how: well\n      --kind K   one of: mutex semaphore\n  -x, --loud   loud";
    const options = {
      out: { type: "string", short: "o" },
      sort: { type: "string" },
      kind: { type: "string", multiple: true },
      loud: { type: "boolean", short: "x" },
    } as const;
    expect(flagsOf(options, help)).toMatchObject([
      { name: "out", short: "o", isFile: true, takesValue: true, words: [], description: "a file" },
      { name: "sort", words: ["a", "b"], description: "a" },
      { name: "kind", words: ["mutex", "semaphore"], isRepeatable: true, description: "one of" },
      { name: "loud", short: "x", takesValue: false, description: "loud" },
    ]);
  });
});
