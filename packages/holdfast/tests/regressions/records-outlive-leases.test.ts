/** A lease extended for a day and then for a minute keeps its later end, and so must its other keys. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/holdfast.js";

const DAY_MS = 86_400_000;
/** Long enough for a busy machine. */
const MOMENT_MS = 60_000;

test("no key of a lease expires before the lease, even after a shorter extension", async () => {
  const keyspace = new Keyspace();
  const holdfast = createHoldfast({ store: embedded({ keyspace }) });
  const briefly = { renew: false, leaseMs: MOMENT_MS };
  const leadership = await holdfast.election("e").campaign("a", briefly);
  await leadership.extend(DAY_MS);
  await leadership.extend(MOMENT_MS);
  await leadership.proclaim("b");
  const lease = await holdfast.mutex("m").acquire(briefly);
  await lease.extend(DAY_MS);
  await lease.extend(MOMENT_MS);
  const adopted = await holdfast.adopt(lease.export());

  expect(adopted.validForMs()).toBeGreaterThan(0);
  const keys = keyspace.keys().filter((key) => key.includes("{"));
  expect(keys.toSorted()).toEqual([
    "hf:election:{e}",
    "hf:election:{e}:fence",
    "hf:election:{e}:value",
    "hf:mutex:{m}",
    "hf:mutex:{m}:fence",
  ]);
  for (const key of keys) expect(keyspace.pttl(key), key).toBeGreaterThan(DAY_MS / 2);
  await holdfast.close();
});
