/**
 * A copy of a request that arrives after later requests of its kind does nothing, even if it is not a copy of the last
 * one.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import type { Store } from "../../src/index.js";
import { createHoldfast } from "../../src/index.js";

/** Records the requests of one script, so that they can be sent again. */
function watched(store: Store, scriptName: string): { store: Store; again: (() => Promise<unknown>)[] } {
  const again: (() => Promise<unknown>)[] = [];
  const run: Store["run"] = (script, keys, args, timeoutMs) => {
    if (script.name === scriptName) again.push(() => store.run(script, keys, args, timeoutMs));
    return store.run(script, keys, args, timeoutMs);
  };
  const passed: Store = {
    kind: store.kind,
    run,
    inbox: (...args) => store.inbox(...args),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  return { store: passed, again };
}

test("a late copy of an earlier trySetCount does not close a latch again", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "count-down-latch/set-count");
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("gate");
  expect(await latch.trySetCount(1)).toBe(true);
  await latch.countDown();
  expect(await latch.trySetCount(1)).toBe(true);
  await latch.countDown();
  await again[0]?.();
  expect(await latch.count()).toBe(0);
  await holdfast.close();
});

test("late copies of trySetCount do not close a latch, even after several later counts", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "count-down-latch/set-count");
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("gate");
  for (let set = 0; set < 4; set += 1) {
    expect(await latch.trySetCount(1)).toBe(true);
    await latch.countDown();
  }
  for (const copy of again) await copy();
  expect(await latch.count()).toBe(0);
  await holdfast.close();
});

test("a late copy of a refused trySetCount sets nothing when the count is zero", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "count-down-latch/set-count");
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("gate");
  await latch.trySetCount(1);
  expect(await latch.trySetCount(2)).toBe(false);
  await latch.countDown();
  await again[1]?.();
  expect(await latch.count()).toBe(0);
  await holdfast.close();
});

test("a late copy of a count-down at zero does not count down the next count", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "count-down-latch/count-down");
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("gate");
  await latch.countDown();
  await latch.countDown(1, { callerId: "part 1" });
  await latch.trySetCount(3);
  for (const copy of again) await copy();
  expect(await latch.count()).toBe(3);
  expect(await latch.countDown(1, { callerId: "part 1" })).toBe(2);
  await holdfast.close();
});

test("a late copy of a count-down that has counted does not count down the next count, even with a caller id", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "count-down-latch/count-down");
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("gate");
  await latch.trySetCount(1);
  await latch.countDown(1, { callerId: "part 1" });
  await latch.trySetCount(2);
  await again[0]?.();
  expect(await latch.count()).toBe(2);
  expect(await latch.countDown(1, { callerId: "part 1" })).toBe(1);
  await holdfast.close();
});

test("a late copy of an earlier reset does not start another generation", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "barrier/reset");
  const holdfast = createHoldfast({ store });
  const barrier = holdfast.barrier("line", { parties: 2 });
  await barrier.reset();
  await barrier.reset();
  const { generation } = await barrier.inspect();
  await again[0]?.();
  expect((await barrier.inspect()).generation).toBe(generation);
  await holdfast.close();
});

test("a late copy of an earlier resize does not undo later ones", async () => {
  const { store, again } = watched(embedded({ keyspace: new Keyspace() }), "permits/resize");
  const holdfast = createHoldfast({ store });
  const semaphore = holdfast.semaphore("slots", { permits: 2 });
  await semaphore.resize(5);
  await semaphore.resize(9);
  await semaphore.resize(7);
  await again[0]?.();
  await again[1]?.();
  expect(await semaphore.capacity()).toBe(7);
  await holdfast.close();
});
