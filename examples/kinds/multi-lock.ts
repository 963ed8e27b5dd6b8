import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
let transfers = 0;

await holdfast.multiLock(["account:1", "account:2"]).run(
  async (lease) => {
    const [from, to] = lease.leases;
    await transfer({ fenceFrom: from?.token, fenceTo: to?.token, signal: lease.signal });
  },
  { waitMs: 5_000 },
);

interface Fences {
  readonly fenceFrom: number | undefined;
  readonly fenceTo: number | undefined;
  readonly signal: AbortSignal;
}

async function transfer({ fenceFrom, fenceTo, signal }: Fences): Promise<void> {
  assert.ok(fenceFrom !== undefined && fenceTo !== undefined && !signal.aborted);
  assert.equal(await holdfast.mutex("account:2").tryAcquire(), null);
  transfers += 1;
}

assert.equal(transfers, 1);
await holdfast.close();
