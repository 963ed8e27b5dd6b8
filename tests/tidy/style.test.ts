import { describe, expect, it, vi } from "vitest";

import { allFiles, type Source } from "./sources.js";
import {
  ABSOLUTE_PATH,
  CONSOLE,
  defaultExports,
  FOCUSED,
  REGISTRY,
  SKIPPED,
  UNFINISHED,
  undocumentedExports,
  vagueNames,
  words,
} from "./style.js";

// Each test reads every source file, which is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const everything = allFiles();
// The tests of the tidy rules contain samples of forbidden text.
const files = everything.filter(({ path }) => !path.startsWith("tests/tidy/"));
const code = files.filter(({ path }) => /\.(tsx?|mjs)$/.test(path));
const library = code.filter(({ path }) => /^packages\/(?!cli|console)[\w-]+\/src\//.test(path));
const tests = code.filter(({ path }) => path.includes("tests/") || path.includes("/testing/"));

function sample(text: string): Source[] {
  return [{ path: "a.ts", text }];
}

describe("exports", () => {
  it("are named, not default exports", () => {
    // Vitest requires a default export from a configuration and from a reporter, VitePress from a configuration. The drop-in
    // exports what redlock exports.
    const ASKED_FOR =
      /(^|\/)(vitest\.config\.ts|\.vitepress\/config\.mjs|outside-errors\.mjs|redlock-compat\/src\/(index|redlock)\.ts)$/;
    const isAskedFor = (path: string): boolean => ASKED_FOR.test(path);
    expect(defaultExports(code.filter(({ path }) => !isAskedFor(path)))).toEqual([]);
  });

  it("have a doc comment", () => {
    expect(undocumentedExports(library)).toEqual([]);
  });

  it.each(["export default 1;", "export default class A {}", "const a = 1; export { a as default };"])(
    "by default are reported: %s",
    (text) => {
      expect(defaultExports(sample(text))).toEqual(["a.ts"]);
    },
  );

  it.each([
    "export class A {}",
    "export abstract class A {}",
    "export interface A {}",
    "export type A = 1;",
    "export const A = 1;",
    "export function A() {}",
    "// A comment.\nexport const A = 1;",
    "/** The file. */\n\nexport const A = 1;",
    "/** Other. */\nconst b = 1;\nexport const A = b;",
  ])("without a doc comment are reported: %s", (text) => {
    expect(undocumentedExports(sample(text))).toEqual(["a.ts: A"]);
  });

  it("with a doc comment, re-exported or overloaded are not reported", () => {
    const text = '/** A. */\nexport function a(): 1;\nexport function a() {}\nexport { b } from "./b.js";\n';
    expect(undocumentedExports(sample(text))).toEqual([]);
  });
});

describe("a file", () => {
  it("has a name that describes its content", () => {
    expect(vagueNames(files)).toEqual([]);
    expect(
      vagueNames([
        { path: "src/utils.ts", text: "" },
        { path: "src/lua-helper.mjs", text: "" },
      ]),
    ).toHaveLength(2);
  });
});

describe("committed files do not contain", () => {
  const at = (...parts: string[]): string => ["", ...parts].join("/");

  it.each<[string, readonly Source[], RegExp, string]>([
    ["what is left for later", code, UNFINISHED, "// FIXME: later"],
    ["a test that silences others", tests, FOCUSED, 'it.concurrent.only("x")'],
    ["a test that does not run", tests, SKIPPED, 'describe.skip("x")'],
    ["output in the library", library, CONSOLE, 'console.log("x")'],
    ["a path of one machine", everything, ABSOLUTE_PATH, `cd ${at("work", "x")}`],
    ["the address of a registry", files, REGISTRY, `"resolved": "http${"s"}://x"`],
  ])("%s", (_, where, word, bad) => {
    expect(words(where, word)).toEqual([]);
    expect(words(sample(`\n${bad}`), word)).toHaveLength(1);
  });
});
