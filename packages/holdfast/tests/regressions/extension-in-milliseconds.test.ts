/** Another library truncated leases to whole seconds. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";

test("an extension keeps its milliseconds on the server", async () => {
  const holdfast = createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
  const lease = await holdfast.mutex("m").acquire({ leaseMs: 100_000, renew: false });
  await lease.extend(200_999);
  const { holders } = await holdfast.mutex("m").inspect();
  expect(holders[0]?.leaseLeftMs).toBeGreaterThan(200_500);
  await holdfast.close();
});
