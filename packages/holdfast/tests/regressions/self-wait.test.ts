/** A caller that waits for a lock of its own process may wait for itself forever, so the error says so. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AcquireTimeoutError, createHoldfast, type Holdfast, type Lease } from "../../src/index.js";

let here: Holdfast;
let elsewhere: Holdfast;
beforeEach(() => {
  const keyspace = new Keyspace();
  here = createHoldfast({ store: embedded({ keyspace }) });
  elsewhere = createHoldfast({ store: embedded({ keyspace }) });
});
afterEach(() => Promise.all([here.close(), elsewhere.close()]));

async function timeoutOf(acquiring: Promise<unknown>): Promise<AcquireTimeoutError> {
  const error = await acquiring.catch((thrown: unknown) => thrown);
  if (!(error instanceof AcquireTimeoutError)) throw new Error("it did not time out", { cause: error });
  return error;
}

test.each([0, 30])("with waitMs %i, the error says that this process holds the lock and since when", async (waitMs) => {
  await here.mutex("a").run(async (lease: Lease) => {
    const own = await timeoutOf(here.mutex("a").run(() => {}, { waitMs }));
    expect(own.isOwn).toBe(true);
    expect(own.holder?.owner).toBe(lease.owner);
    expect(own.message).toContain(`held by this process, ${lease.owner}`);
    expect(own.message).toContain(` since ${new Date(own.holder?.sinceAtMs ?? 0).toISOString()}`);
    expect(own.message).toContain("Another task in this process or the caller itself holds it");

    const others = await timeoutOf(elsewhere.mutex("a").acquire({ waitMs }));
    expect(others.isOwn).toBe(false);
    expect(others.message).not.toMatch(/by this process|for itself/);
  });
});

test("the error of a multi-lock says that this process holds the member it could not get", async () => {
  await here.mutex("b").acquire();
  const error = await timeoutOf(here.multiLock(["a", "b"]).acquire({ waitMs: 30 }));
  expect(error).toMatchObject({ lockName: "b", isOwn: true });
});
