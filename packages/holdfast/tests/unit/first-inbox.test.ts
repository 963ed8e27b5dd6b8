/** Leases granted before the client's inbox was open. */
import { expect, test } from "vitest";
import { Answer, ScriptedLock } from "./scripted-lock.js";

test.each([true, false])(
  "a force-release before the inbox was open is found soon after it opens (cluster: %s)",
  async (isCluster) => {
    const world = new ScriptedLock({ isCluster });
    const opened = new Answer<void>();
    world.store.subscribe = () => opened.promise;
    const lease = await world.lock.acquire();
    world.answers.extend = async () => "claimed";
    const { signal } = lease;
    // On one host, another client can force-release the lease within this time.
    await world.runtime.advance(0.4);
    expect(signal.aborted).toBe(false);
    opened.resolve();
    await world.runtime.advance(1_001);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" });
  },
);

test("a lease with `renew: false` or one granted after the inbox opened sends no extra request", async () => {
  for (const isEarly of [true, false]) {
    const world = new ScriptedLock({ isCluster: true });
    const opened = new Answer<void>();
    if (isEarly) world.store.subscribe = () => opened.promise;
    else await (await world.lock.acquire()).release();
    await world.runtime.advance(0);
    const lease = await world.lock.acquire({ renew: !isEarly });
    if (isEarly) await world.runtime.advance(10);
    opened.resolve();
    await world.runtime.advance(1_001);
    expect(world.sentOf("extend")).toEqual([]);
    lease.assertHeld();
  }
});
