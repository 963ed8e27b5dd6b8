/**
 * A downgrade must grant waiting readers itself. Otherwise their re-check would do it seconds later and hide the bug.
 */
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

test("a downgrade grants the readers behind the writer in the same step", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const lock = holdfast.readWriteLock("changing sides");
  const writer = await lock.write.acquire({ leaseMs: LONG_MS });
  const reading = [lock.read.acquire({ waitMs: LONG_MS }), lock.read.acquire({ waitMs: LONG_MS })];
  await until(async () => (await lock.read.inspect()).waiterCount === 2, "both readers to queue");
  await writer.downgrade();
  const { holders, waiterCount } = await lock.read.inspect();
  expect({ holders: holders.length, waiterCount }).toEqual({ holders: 3, waiterCount: 0 });
  for (const lease of [writer, ...(await Promise.all(reading))]) await lease.release();
  await holdfast.close();
});
