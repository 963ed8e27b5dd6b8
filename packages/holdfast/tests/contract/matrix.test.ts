/** The matrix of kinds and stores has no hole. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { stores } from "../stores.js";
import { contracts } from "./contracts.js";

const here = dirname(fileURLToPath(import.meta.url));

test("every store of the registry has a file that runs all contracts on it", () => {
  const tested = readdirSync(here)
    .filter((file) => file.endsWith(".test.ts") && file !== "matrix.test.ts")
    .map((file) => /^contractsOn\("(.+)"\);$/m.exec(readFileSync(join(here, file), "utf8"))?.[1]);
  expect(tested.toSorted((a, b) => ((a ?? "") < (b ?? "") ? -1 : 1))).toEqual(
    stores.map(({ name }) => name).toSorted(),
  );
});

test("every contract in src/testing/<kind>.contract.ts of a kind with scripts is in the matrix", () => {
  const src = join(here, "../../src");
  const kinds = readdirSync(src, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && readdirSync(join(src, entry.name)).includes("inspect.lua"))
    .map(({ name }) => name);
  expect(Object.keys(contracts)).toEqual(expect.arrayContaining(kinds));
});
