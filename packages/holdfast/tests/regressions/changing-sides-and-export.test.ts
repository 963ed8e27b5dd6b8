import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { UnsupportedError } from "../../src/core/errors.js";
import { createHoldfast } from "../../src/holdfast.js";

test("a read lease cannot be exported while its upgrade is in progress", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const { read } = holdfast.readWriteLock("r");
  const lease = await read.acquire();
  const upgrading = lease.tryUpgrade();
  // The upgrade starts in a later turn.
  await Promise.resolve();
  expect(() => lease.export()).toThrow(UnsupportedError);

  expect(await upgrading).toBe(lease);
  const exported = lease.export();
  expect(exported).toMatchObject({ mode: "write", token: lease.token });
  await holdfast.adopt(exported);
  expect(await read.tryAcquire()).toBe(null);
  await holdfast.close();
});
