import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const parts = ["part 1", "part 2", "part 3"];

const loaded = holdfast.countDownLatch("import 7");
await loaded.trySetCount(3); // true for the first caller

// Each part, in any process; the same id does not count again:
const load = async (part: string) => await loaded.countDown(1, { callerId: part }); // the remaining count

// In each process that needs all parts:
const all = loaded.await({ waitMs: 60_000 }); // until it is zero; 10 s by default

assert.equal(await load("part 1"), 2);
assert.equal(await load("part 1"), 2);
await Promise.all(parts.map(load));
await all;
assert.equal(await loaded.count(), 0);
await holdfast.close();
