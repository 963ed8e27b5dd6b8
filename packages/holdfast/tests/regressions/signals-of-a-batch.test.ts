/** Leases that share one claim have the same owner id, but each lease's signals must count separately. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

/**
 * Two waiters of a condition, and two callers of one process that send one signal each. @returns the callers' owner ids
 */
async function round(here: Holdfast, elsewhere: Holdfast, name: string): Promise<readonly (string | undefined)[]> {
  const condition = elsewhere.mutex(name).condition("c");
  const waiting = Array.from({ length: 2 }, async () => {
    const lease = await elsewhere.mutex(name).acquire({ fairness: "strict" });
    await (await condition.wait(lease, { waitMs: LONG_MS, fairness: "strict" })).release();
  });
  await until(async () => (await condition.inspect()).waiterCount === 2, "two to wait for a signal");
  const mutex = here.mutex(name);
  const block = await elsewhere.mutex(name).acquire();
  const signalled = Array.from({ length: 2 }, () =>
    mutex.run(async (lease) => ({ owner: lease.owner, moved: await mutex.condition("c").signal(lease) })),
  );
  await until(async () => (await mutex.inspect()).waiterCount === 1, "one claim for both");
  await block.release();
  const said = await Promise.all(signalled);
  expect(said.map(({ moved }) => moved)).toEqual([1, 1]);
  await Promise.all(waiting);
  return said.map(({ owner }) => owner);
}

test("each lease of a batch wakes its own waiter", async () => {
  const keyspace = new Keyspace();
  const here = createHoldfast({ store: embedded({ keyspace }) });
  const elsewhere = createHoldfast({ store: embedded({ keyspace }) });
  try {
    // A slow machine may end a batch early. Then the two callers have separate claims, and the round proves nothing.
    let haveShared = false;
    for (let i = 0; i < 50 && !haveShared; i += 1) {
      const [first, second] = await round(here, elsewhere, `m${i}`);
      haveShared = first === second;
    }
    expect(haveShared).toBe(true);
  } finally {
    await Promise.all([here.close(), elsewhere.close()]);
  }
});
