import { describe, expect, it, vi } from "vitest";

import { cycles, forbiddenImports } from "./imports.js";
import { allFiles, type Source } from "./sources.js";

// Each test reads every source file, which is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const code = allFiles().filter(({ path }) => /\.(tsx?|mjs)$/.test(path));
const IN_LIBRARY = "packages/holdfast/src";

function one(path: string, specifier: string, type = ""): Source[] {
  return [{ path, text: `import ${type} { x } from "${specifier}";` }];
}

describe("imports", () => {
  it("follow the import table", () => {
    expect(forbiddenImports(code), "see the table of folders in ARCHITECTURE.md").toEqual([]);
  });

  it("form no cycle inside a package", () => {
    expect(cycles(code.filter(({ path }) => path.includes("/src/")))).toEqual([]);
  });
});

describe("the import table refuses", () => {
  it.each([
    ["a kind in core", `${IN_LIBRARY}/core/claim.ts`, "../mutex/mutex.js"],
    ["a script in core", `${IN_LIBRARY}/core/claim.ts`, "../generated/scripts.js"],
    ["a package in core", `${IN_LIBRARY}/core/claim.ts`, "ioredis"],
    ["a kind in another kind", `${IN_LIBRARY}/semaphore/semaphore.ts`, "../mutex/mutex.js"],
    ["permits in a kind that is not built on them", `${IN_LIBRARY}/mutex/mutex.ts`, "../permits/permits.js"],
    ["a store in a kind", `${IN_LIBRARY}/mutex/mutex.ts`, "../stores/ioredis.js"],
    ["a client in a lock of another system", "packages/interop/src/redisson/lock.ts", "ioredis"],
    ["a kind in a store", `${IN_LIBRARY}/stores/ioredis.ts`, "../mutex/mutex.js"],
    ["the engine in a store", `${IN_LIBRARY}/stores/ioredis.ts`, "../core/claim.js"],
    ["a store in another store", `${IN_LIBRARY}/stores/ioredis.ts`, "./node-redis.js"],
    ["a client at run time", `${IN_LIBRARY}/stores/ioredis.ts`, "ioredis"],
    ["a store in the contracts", `${IN_LIBRARY}/testing/mutex.contract.ts`, "../stores/ioredis.js"],
    ["a kind in the contracts", `${IN_LIBRARY}/testing/mutex.contract.ts`, "../mutex/mutex.js"],
    ["sources of the library in a recipe", "packages/recipes/src/once/once.ts", "../../../holdfast/src/core/hold.js"],
    ["a framework in another integration", "packages/pg/src/index.ts", "@nestjs/common"],
    ["a store in admin", `${IN_LIBRARY}/admin/scan.ts`, "../stores/ioredis.js"],
    ["an entry point in admin", `${IN_LIBRARY}/admin/scan.ts`, "../internal.js"],
    ["a script in the contracts", `${IN_LIBRARY}/testing/mutex.contract.ts`, "../generated/scripts.js"],
    ["anything else in generated code", `${IN_LIBRARY}/generated/scripts.ts`, "../core/session.js"],
    ["what lies outside the sources", `${IN_LIBRARY}/index.ts`, "../tests/stores.js"],
    ["sources of the library in embedded", "packages/embedded/src/store.ts", "../../holdfast/src/index.js"],
    ["a client in embedded", "packages/embedded/src/store.ts", "ioredis"],
    ["built files of the library in an example", "examples/orders/demo.ts", "holdfast/dist/core/claim.js"],
    ["sources of the library in the benchmark", "bench/main.ts", "../packages/holdfast/src/index.js"],
  ])("%s", (_, path, specifier) => {
    expect(forbiddenImports(one(path, specifier))).toEqual([`${path} may not import ${specifier}`]);
  });

  it("a forbidden import in any syntax", () => {
    const path = `${IN_LIBRARY}/core/claim.ts`;
    for (const text of [
      'export * from "../index.js";',
      'export type A = import("../index.js").B;',
      'const a = await import("../index.js");',
      'import "../index.js";',
    ])
      expect(forbiddenImports([{ path, text }])).toHaveLength(1);
  });
});

describe("the import table allows", () => {
  it.each([
    ["core in core", `${IN_LIBRARY}/core/claim.ts`, "./store.js"],
    ["its scripts in a kind", `${IN_LIBRARY}/mutex/mutex.ts`, "../generated/scripts.js"],
    ["the port in a store", `${IN_LIBRARY}/stores/ioredis.ts`, "../core/store.js"],
    ["every store where they are detected", `${IN_LIBRARY}/stores/detect.ts`, "./ioredis.js"],
    ["the internal entry in a recipe", "packages/recipes/src/once/once.ts", "holdfast/internal"],
    ["a recipe in an integration", "packages/nestjs/src/index.ts", "@holdfast/recipes"],
    ["permits in a semaphore", `${IN_LIBRARY}/semaphore/semaphore.ts`, "../permits/permits.js"],
    ["anything in the tests of an example", "examples/tests/orders.test.ts", "../../tests/support/redis-server.js"],
    ["the library in an example", "examples/orders/demo.ts", "holdfast"],
  ])("%s", (_, path, specifier) => {
    expect(forbiddenImports(one(path, specifier))).toEqual([]);
  });

  it("the types of a client in a store", () => {
    expect(forbiddenImports(one(`${IN_LIBRARY}/stores/ioredis.ts`, "ioredis", "type"))).toEqual([]);
  });
});

it("an import cycle through several files is found once", () => {
  const file = (path: string, to: string): Source => ({ path, text: `import type { X } from "./${to}.js";` });
  const files = [file("a.ts", "b"), file("b.ts", "c"), file("c.ts", "b"), file("d.ts", "a")];
  expect(cycles(files)).toEqual(["b.ts → c.ts → b.ts"]);
});
