/** The error of a retried request that never gets a reply. */
import { expect, test } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import { insist } from "../../src/core/release.js";
import { ManualRuntime } from "./manual-runtime.js";
import { watch } from "./scripted-lock.js";

const commandTimeoutMs = 100;

function failure(mayHaveRun: boolean, transient: boolean, why: string): StoreError {
  return new StoreError("stock", { mayHaveRun, transient, cause: new Error(why) });
}

test.each([
  ["is never sent", true],
  ["is refused permanently", false],
])("a request that may have run is reported as uncertain even if the next one %s", async (_, transient) => {
  const runtime = new ManualRuntime();
  let asked = 0;
  const last = failure(false, transient, "the last one");
  const insisting = watch(
    insist({ runtime, commandTimeoutMs }, async () => {
      asked += 1;
      throw asked === 1 ? failure(true, true, "no answer") : last;
    }),
  );
  await runtime.advance(commandTimeoutMs * 2 + 50);
  expect(asked).toBeGreaterThan(1);
  expect(insisting.error).toBeInstanceOf(StoreError);
  expect(insisting.error).toMatchObject({ lockName: "stock", mayHaveRun: true, transient, cause: last.cause });
  expect((insisting.error as Error).message).toContain("it may still have been carried out");
});

test("a request that was never sent is reported as not carried out", async () => {
  const runtime = new ManualRuntime();
  const last = failure(false, true, "the last one");
  const insisting = watch(insist({ runtime, commandTimeoutMs }, () => Promise.reject(last)));
  await runtime.advance(commandTimeoutMs * 2 + 50);
  expect(insisting.error).toBe(last);
});
