/** Group E: clocks, fencing, identity. README.md lists the rows that are tested elsewhere. */
import { expect, test } from "vitest";
import { LeaseLostError } from "../../src/index.js";
import { LONG_MS } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("E4: after the server loses its data, an old holder cannot affect a new hold", async () => {
  const old = await scene.lock.acquire({ leaseMs: LONG_MS });
  await scene.redis.flushall();
  const fresh = await scene.rival.acquire({ waitMs: 0, leaseMs: LONG_MS });
  expect(fresh.token).toBeGreaterThan(old.token);
  expect(fresh.owner).not.toBe(old.owner);
  await expect(old.extend(LONG_MS)).rejects.toThrow(LeaseLostError);
  await expect(old.release()).rejects.toThrow(LeaseLostError);
  expect((await scene.lock.inspect()).holders[0]).toMatchObject({ owner: fresh.owner, token: fresh.token });
  expect(await fresh.release()).toBe("released");
});
