import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
let calls = 0;

const units = holdfast.semaphore("warehouse-api", { permits: 10 });

await units.run(() => callApi()); // one permit
await units.run(() => exportAll(), { permits: 4 }); // four, all or none

await using lease = await units.acquire({ permits: 2 });
const { slots } = lease; // for example [0, 3]: no other holder has these numbers

await units.resize(20); // for all processes, immediately

async function callApi(): Promise<void> {
  calls += 1;
}

async function exportAll(): Promise<void> {
  assert.equal((await units.inspect()).used, 4);
  calls += 1;
}

assert.equal(calls, 2);
assert.equal(slots.length, 2);
assert.equal(await units.capacity(), 20);
await lease.release();
await holdfast.close();
