import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const saved: number[] = [];

const order = holdfast.mutex("order:42");

const receipt = await order.run(
  async (lease) => {
    const paid = await charge({ signal: lease.signal }); // stops if the lease is lost
    lease.assertHeld(); // throws if the lease is over
    return await save(paid, { fence: lease.token }); // the database refuses an older token
  },
  { waitMs: 5_000, label: "web" },
);

const lease = await order.tryAcquire(); // null if it is held
if (lease !== null) await lease.release();

async function charge({ signal }: { signal: AbortSignal }): Promise<string> {
  signal.throwIfAborted();
  return "paid";
}

async function save(paid: string, { fence }: { fence: number }): Promise<string> {
  assert.ok(fence > (saved.at(-1) ?? 0));
  saved.push(fence);
  return `${paid}: order 42`;
}

assert.equal(receipt, "paid: order 42");
assert.ok(lease !== null && lease.token > (saved[0] ?? Infinity));
await holdfast.close();
