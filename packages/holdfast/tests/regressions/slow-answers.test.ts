/** A connection on which every reply takes longer than the lease. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Store } from "../../src/core/store.js";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";

const LEASE_MS = 100;

/** Delays every reply of `store` by more than a lease. */
function slow(store: Store): Store {
  return {
    kind: store.kind,
    async run(...call) {
      const reply = await store.run(...call);
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS * 1.5));
      return reply;
    },
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: slow(embedded()), leaseMs: LEASE_MS });
});
afterEach(() => holdfast.close());

test("an open latch lets its callers pass even if replies take longer than the lease", async () => {
  const latch = holdfast.countDownLatch("l");
  await latch.await({ waitMs: 0 });
  await latch.await();
});

test("a party passes the barrier even if replies take longer than the lease", async () => {
  const barrier = holdfast.barrier("b", { parties: 1 });
  expect(await barrier.arrive({ waitMs: 0 })).toEqual({ generation: 1, index: 0 });
  expect(await barrier.arrive()).toEqual({ generation: 2, index: 0 });
});
