/** Group E: clocks, fencing, identity. The rows that are proved elsewhere are listed in README.md. */
import { expect, test } from "vitest";
import { LeaseLostError } from "../../src/index.js";
import { LONG_MS } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("E4: a server that lost its memory lets no old holder act on a new hold", async () => {
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
