/** Checks that the tests run with the framework versions of package.json, which `npm run test:peers` replaces. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { withLock } from "../src/index.js";
import { Bench } from "./bullmq-bench.js";

const bench = new Bench();

const wanted = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};

/** Returns the version of the copy of the package whose code is on the call stack. */
function callingVersion(name: string): string {
  const folder = new RegExp(`(/[^\\s()]*/node_modules/${name})/`).exec(new Error("who calls").stack ?? "")?.[1];
  if (folder === undefined) throw new Error(`no code of ${name} is calling`);
  return (JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { version: string }).version;
}

test("BullMQ is the version that package.json names", async () => {
  const found = deferred<string>();
  const run = withLock(
    bench.holdfast,
    () => undefined,
    async () => {},
  );
  bench.worker((...args) => {
    found.resolve(callingVersion("bullmq"));
    return run(...args);
  });
  await bench.add();
  expect(await found.promise).toBe(wanted.devDependencies.bullmq);
});
