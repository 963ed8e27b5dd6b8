import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const [a, b, c] = [embedded(), embedded(), embedded()];
// Newly started servers grant nothing for one lease, so the lease is short here.
const holdfast = createHoldfast({ redlock: [a, b, c], leaseMs: 2_000 });
let booked = 0;

// holdfast is createHoldfast({ redlock: [a, b, c] }), with clients of three servers.
await holdfast.redlock("ledger").run(async (lease) => {
  await book({ fence: lease.token, signal: lease.signal });
});

async function book({ fence, signal }: { fence: number; signal: AbortSignal }): Promise<void> {
  assert.ok(fence > 0 && !signal.aborted);
  booked += 1;
}

assert.equal(booked, 1);
await holdfast.close();
