import { describe, expect, it } from "vitest";

import { incompleteKinds, runtimeDependencies, uncalledScripts } from "./kinds.js";
import { allFiles, type Source } from "./sources.js";

const files = allFiles();
const SOURCES = "packages/holdfast/src";

function only(...paths: readonly string[]): Source[] {
  return paths.map((path) => ({ path, text: "" }));
}

describe("a script", () => {
  it("has a caller", () => {
    expect(uncalledScripts(files)).toEqual([]);
  });

  it("that appears only in the generated file has no caller", () => {
    const generated = { path: `${SOURCES}/generated/scripts.ts`, text: "export const multiLockLeave = 1" };
    const sample = [...only(`${SOURCES}/multi-lock/leave.lua`, `${SOURCES}/lua/shared.lua`), generated];
    expect(uncalledScripts(sample)).toEqual(["multi-lock/leave"]);
    const caller = { path: `${SOURCES}/multi-lock/multi-lock.ts`, text: "call(store, multiLockLeave)" };
    expect(uncalledScripts([...sample, caller])).toEqual([]);
  });
});

describe("a kind", () => {
  it("has a contract, an inspect.lua and documented keys", () => {
    expect(incompleteKinds(files)).toEqual([]);
  });

  it("that lacks them is reported", () => {
    expect(incompleteKinds(only(`${SOURCES}/semaphore/acquire.lua`))).toEqual([
      "semaphore has no testing/semaphore.contract.ts",
      "semaphore has no inspect.lua",
      "semaphore has no row with hf:semaphore: in docs/keys*.md of its package",
    ]);
  });

  it("without holders needs no inspect.lua", () => {
    expect(incompleteKinds(only(`${SOURCES}/barrier/arrive.lua`))).toHaveLength(2);
  });

  it("composed of other locks needs only a contract", () => {
    expect(incompleteKinds(only(`${SOURCES}/multi-lock/acquire.lua`))).toEqual([
      "multi-lock has no testing/multi-lock.contract.ts",
    ]);
  });

  it("in the format of another system needs only an inspect.lua", () => {
    expect(incompleteKinds(only("packages/interop/src/other/acquire.lua"))).toEqual([
      "interop/other has no inspect.lua",
    ]);
  });

  it("that has them passes", () => {
    const kind = only(`${SOURCES}/x/acquire.lua`, `${SOURCES}/x/inspect.lua`, `${SOURCES}/testing/x.contract.ts`);
    expect(incompleteKinds([...kind, { path: "packages/holdfast/docs/keys.md", text: "| `hf:x:{name}` |" }])).toEqual(
      [],
    );
  });
});

describe("the library", () => {
  it("has no runtime dependency", () => {
    const manifest = files.find(({ path }) => path === "packages/holdfast/package.json");
    expect(runtimeDependencies(manifest?.text ?? "")).toEqual([]);
  });

  it("is reported for a dependency of any sort", () => {
    expect(runtimeDependencies('{"dependencies":{"a":"1"},"optionalDependencies":{"b":"1"}}')).toEqual(["a", "b"]);
  });
});
