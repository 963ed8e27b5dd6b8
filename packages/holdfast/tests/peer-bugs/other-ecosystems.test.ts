/** Bugs of lock libraries in other ecosystems. README.md lists the rows that are tested elsewhere. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("O4: a holder's token is its own and not the latest, and an expired lock resets no counter", async () => {
  const stale = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
  const { token } = stale;
  const fresh = await scene.rival.acquire({ waitMs: LONG_MS });
  expect(stale.token).toBe(token);
  expect(fresh.token).toBeGreaterThan(token);
  expect((await scene.lock.inspect()).token).toBe(fresh.token);
  await fresh.release();
});
