/** A change of sides must hand over by itself: the re-check of whoever waits would hide it, seconds later. */
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

test("a writer that becomes a reader has the readers behind it granted in the same step", async () => {
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
