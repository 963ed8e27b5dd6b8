/**
 * The contract suite for a mutex, which every store must pass. Published for authors of custom stores.
 *
 * @example
 * describe("mutex on my store", () => mutexContract({ name: "mine", start: startMine }));
 */
import { expect, test } from "vitest";
import { LONG_MS, withLeaseInTime } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { forcedReasonContract } from "./forced-release.contract.js";
import { cohortContract, cohortHandOverContract } from "./local-queue.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function mutexContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.mutex(name));

  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));
  forcedReasonContract(scene);
  cohortContract(scene, (holdfast, name) => holdfast.mutex(name));
  cohortHandOverContract(scene);

  test("a mutex with a mapped key and clients that use SET NX PX exclude each other", () =>
    withLeaseInTime(async (leaseMs) => {
      const key = `legacy:${scene.name}:${leaseMs}`;
      const mutex = scene.holdfast.mutex(scene.name, { key });
      const lease = await mutex.acquire();
      expect(await scene.server.setNx(key, "foreign", LONG_MS)).toBe(false);
      await lease.release();
      expect(await scene.server.setNx(key, "foreign", leaseMs)).toBe(true);
      expect(await mutex.tryAcquire()).toBeNull();
      const [holder] = (await mutex.inspect()).holders;
      expect(holder).toMatchObject({ owner: "foreign", token: undefined, label: undefined });
      const next = await mutex.acquire({ waitMs: LONG_MS });
      expect(next.token).toBeGreaterThan(lease.token);
      await next.release();
    }));

  test("a lease deleted on the server is lost with reason server-lost", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    await scene.server.delete(...(await scene.server.keysWith(scene.name)));
    const error: unknown = await lease.extend(LONG_MS).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost", token: lease.token });
    expect(lease.signal.aborted).toBe(true);
  });
}
