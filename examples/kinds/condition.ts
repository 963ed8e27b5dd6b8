import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const buffer: string[] = [];
const taken: (string | undefined)[] = [];

const mutex = holdfast.mutex("buffer");
const notEmpty = mutex.condition("not empty");

async function consume(): Promise<void> {
  let lease = await mutex.acquire();
  try {
    while (await isEmpty()) lease = await notEmpty.wait(lease, { waitMs: Infinity }); // a new lease each time
    await takeOne({ fence: lease.token });
  } finally {
    await lease.release();
  }
}

async function produce(): Promise<void> {
  await mutex.run(async (lease) => {
    await putOne();
    await notEmpty.signal(lease); // or signalAll
  });
}

async function isEmpty(): Promise<boolean> {
  return buffer.length === 0;
}

async function takeOne({ fence }: { fence: number }): Promise<void> {
  assert.ok(fence > 0);
  taken.push(buffer.shift());
}

async function putOne(): Promise<void> {
  buffer.push("thing");
}

await Promise.all([consume(), produce()]);
assert.deepEqual(taken, ["thing"]);
await holdfast.close();
