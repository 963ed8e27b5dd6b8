import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { missingPlatforms } from "./lock-file.js";
import { ROOT } from "./sources.js";

it("the lock file lists the binaries of every platform", () => {
  expect(missingPlatforms(readFileSync(join(ROOT, "package-lock.json"), "utf8"))).toEqual([]);
});

it("a platform that the lock file does not list is reported", () => {
  const optionalDependencies = { "@a/linux": "1.0.0", "@a/darwin": "1.0.0" };
  const packages = { "node_modules/a": { optionalDependencies }, "node_modules/@a/linux": { version: "1.0.0" } };
  expect(missingPlatforms(JSON.stringify({ packages }))).toEqual(["node_modules/a: @a/darwin"]);
});
