/** Group C: release. README.md lists the rows that are tested elsewhere. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, until } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("C1: releasing an expired lock takes at most two script calls, does not throw, and reports the expiry", async () => {
  const releaseExpired = async (): Promise<number> => {
    const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    await until(async () => (await scene.redis.exists(scene.key())) === 0, "the lease to end");
    const counted = await scene.count();
    expect(await lease.release()).toBe("expired-unclaimed");
    expect(await lease.release()).toBe("expired-unclaimed");
    return (await counted()).scripts;
  };
  await releaseExpired(); // loads the scripts
  expect(await releaseExpired()).toBeLessThanOrEqual(2);
});
