/** Group C: release. The rows that are proved elsewhere are listed in README.md. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, until } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("C1: releasing an expired lock is two script calls at most, neither throws nor stalls, and says so", async () => {
  const releaseExpired = async (): Promise<number> => {
    const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    await until(async () => (await scene.redis.exists(scene.key())) === 0, "the lease to end");
    const counted = await scene.count();
    expect(await lease.release()).toBe("expired-unclaimed");
    expect(await lease.release()).toBe("expired-unclaimed");
    return (await counted()).scripts;
  };
  await releaseExpired(); // the server is taught its scripts
  expect(await releaseExpired()).toBeLessThanOrEqual(2);
});
