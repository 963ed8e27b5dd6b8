/** Checks that the matrix of kinds and stores is complete. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { stores } from "../stores.js";
import { contracts, EACH_ONCE, SELECTED } from "./contracts.js";

const here = dirname(fileURLToPath(import.meta.url));

test("every store of the registry has a test file that runs the contracts on it", () => {
  const tested = readdirSync(here)
    .filter((file) => file.endsWith(".test.ts") && file !== "matrix.test.ts")
    .map((file) => /^contractsOn\("(.+)"\);$/m.exec(readFileSync(join(here, file), "utf8"))?.[1]);
  expect(
    tested.toSorted((a, b) => ((a ?? "") < (b ?? "") ? -1 : 1)),
    "each row of tests/stores.ts needs one file in tests/contract that calls contractsOn",
  ).toEqual(stores.map(({ name }) => name).toSorted());
});

test("the stores and kinds selected for a plain test run exist, and every kind runs on each topology", () => {
  const names = stores.map(({ name }) => name);
  const topologyOf = (name: string): string => / (on a cluster|behind Sentinel)$/.exec(name)?.[1] ?? "";
  for (const [store, kinds] of Object.entries(SELECTED)) {
    expect(names).toContain(store);
    expect(Object.keys(contracts)).toEqual(expect.arrayContaining([...kinds]));
    const others = names.filter((name) => topologyOf(name) === topologyOf(store));
    const everyKind = others.filter((name) => EACH_ONCE.every((kind) => (SELECTED[name] ?? EACH_ONCE).includes(kind)));
    expect(everyKind, store).not.toEqual([]);
  }
  for (const topology of ["", "on a cluster"]) {
    const inFull = names.filter((name) => topologyOf(name) === topology && SELECTED[name] === undefined);
    expect(inFull, topology).not.toEqual([]);
  }
});

test("every kind with a contract suite or with scripts is in the matrix", () => {
  const src = join(here, "../../src");
  // Code that only other kinds use is tested through those kinds.
  const machines = ["permits"];
  const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const suites = readdirSync(join(src, "testing"));
  const kinds = folders.filter(
    ({ name }) =>
      !machines.includes(name) &&
      (suites.includes(`${name}.contract.ts`) || readdirSync(join(src, name)).includes("inspect.lua")),
  );
  expect(Object.keys(contracts), "enter the contract of the kind in tests/contract/contracts.ts").toEqual(
    expect.arrayContaining(kinds.map(({ name }) => name)),
  );
});
