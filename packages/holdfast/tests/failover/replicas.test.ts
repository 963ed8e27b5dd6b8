/** `replicas`: a grant or a renewal counts only once that many replicas have it. */
import { describe, expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { type Lease, StoreError, UnsupportedError } from "../../src/index.js";
import { LONG_MS, SHORT_MS, sleep, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, outcomeOf } from "../faults/scene.js";
import { useFailoverScene } from "./failover-scene.js";

const scene = useFailoverScene();
const replicas = { atLeast: 1, timeoutMs: 1_000 };
/** For calls that must fail because replicas are missing. */
const brisk = { atLeast: 1, timeoutMs: 1_000 };

describe.each([ioredis, nodeRedis])("$name", (library) => {
  test("a returned lease is on the replica, whether a reply or a message granted it", async () => {
    const { name, replica } = scene;
    const lock = `hf:mutex:{${name}}`;
    const [first, second] = [await scene.client(library, { replicas }), await scene.client(library, { replicas })];
    const lease = await first.mutex(name).acquire();
    expect(await replica.command("GET", lock)).toBe(lease.owner);
    const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
    await until(async () => (await scene.master.command("ZCARD", `${lock}:queue`)) === 1, "the second to wait");
    await lease.release();
    const next = await waiting;
    expect(await replica.command("GET", lock)).toBe(next.owner);
    expect(await next.release()).toBe("released");
    const permits = await first.semaphore(name, { permits: 2 }).acquire({ permits: 2 });
    expect(await replica.command("HEXISTS", `hf:semaphore:{${name}}`, permits.owner)).toBe(1);
    expect(await permits.release()).toBe("released");
    const both = await first.multiLock([`${name}:a`, `${name}:b`]).acquire();
    for (const { owner, name: member } of both.leases) {
      expect(await replica.command("GET", `hf:mutex:{${member}}`)).toBe(owner);
    }
    expect(await both.release()).toBe("released");
  });

  test("with too few replicas, grants fail and are undone, and renewals do not count", async () => {
    const { name, master } = scene;
    const holdfast = await scene.client(library, { replicas });
    const held = await holdfast.mutex(`${name}:held`).acquire({ leaseMs: 1_500 });
    await scene.cutReplication();
    const { error } = await outcomeOf(holdfast.mutex(name).acquire({ waitMs: LONG_MS }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ mayHaveRun: true, transient: true, lockName: name });
    expect(String(error)).toMatch(/only 0 of 1 replicas acknowledged/);
    await until(async () => (await master.command("EXISTS", `hf:mutex:{${name}}`)) === 0, "it is given back");
    expect((await outcomeOf(holdfast.mutex(name).tryAcquire())).error).toBeInstanceOf(StoreError);
    await until(() => held.validForMs() === 0, "the lease whose renewals do not count to end");
    expect(held.signal.reason).toMatchObject({ reason: "expired" });
  });

  test("with too few replicas, a lease cannot be extended beyond the length that the server knows", async () => {
    const { name } = scene;
    const holdfast = await scene.client(library, { replicas });
    const lease = await holdfast.mutex(name).acquire({ leaseMs: 10_000, renew: false });
    await scene.cutReplication();
    // Longer than any lease reported to the server, so the failover guard sends its request before the script.
    const { error } = await outcomeOf(lease.extend(600_000));
    expect(String(error)).toMatch(/only 0 of 1 replicas acknowledged/);
    expect(lease.validForMs()).toBeLessThan(10_000);
  });
});

describe("with too few replicas", () => {
  const few = /only 0 of 1 replicas acknowledged/;
  const free = (): Promise<void> =>
    until(async () => (await scene.master.command("EXISTS", `hf:mutex:{${scene.name}}`)) === 0, "it is given back");

  test("a grant by a signal fails and is released", async () => {
    const { name, master } = scene;
    const [first, plain] = [await scene.client(ioredis, { replicas }), await scene.client(ioredis)];
    const wait = async (): Promise<{ end: ReturnType<typeof outcomeOf> }> => {
      const condition = first.mutex(name).condition("ready");
      const end = outcomeOf(condition.wait(await first.mutex(name).acquire(), { waitMs: LONG_MS }));
      await until(async () => (await condition.inspect()).waiterCount === 1, "it waits");
      return { end };
    };
    const signal = (): Promise<unknown> =>
      plain.mutex(name).run((lease) => plain.mutex(name).condition("ready").signal(lease));

    const well = await wait();
    await signal();
    const { value: lease, error: none } = (await well.end) as { value: Lease; error?: unknown };
    expect(none).toBeUndefined();
    expect(await scene.replica.command("GET", `hf:mutex:{${name}}`)).toBe(lease.owner);
    await lease.release();

    const badly = await wait();
    await scene.cutReplication();
    await signal();
    const { error } = await badly.end;
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toMatch(few);
    await free();
    expect(await master.command("ZCARD", `hf:mutex:{${name}}:queue`)).toBe(0);
  });

  test("an adoption fails and its lease is released", async () => {
    const { name } = scene;
    const [adopting, plain] = [await scene.client(ioredis, { replicas: brisk }), await scene.client(ioredis)];
    const adopted = await adopting.adopt((await plain.mutex(name).acquire()).export());
    expect(await scene.replica.command("GET", `hf:mutex:{${name}}`)).toBe(adopted.owner);
    await adopted.release();
    const exported = (await plain.mutex(name).acquire()).export();
    await scene.cutReplication();
    const { error } = await outcomeOf(adopting.adopt(exported));
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toMatch(few);
    await free();
  });

  test("a failed upgrade or downgrade leaves a read lease, and a retry settles it", async () => {
    const { name } = scene;
    const [first, plain] = [await scene.client(ioredis, { replicas: brisk }), await scene.client(ioredis)];
    const lock = first.readWriteLock(name);
    const lease = await lock.read.acquire({ leaseMs: 4 * LONG_MS });
    await lease.tryUpgrade();
    await lease.downgrade();
    expect(lease.mode).toBe("read");
    await scene.cutReplication();
    for (const change of [(): Promise<unknown> => lease.tryUpgrade(), (): Promise<unknown> => lease.downgrade()]) {
      const { error } = await outcomeOf(change());
      expect(error).toBeInstanceOf(StoreError);
      expect(String(error)).toMatch(few);
      expect(lease.mode).toBe("read");
    }
    await outcomeOf(lease.tryUpgrade());
    scene.mendReplication();
    await scene.synced();
    await lease.downgrade();
    await plain.readWriteLock(name).read.run(() => lease.assertHeld(), { waitMs: LONG_MS });
    expect(await lease.tryUpgrade()).toBe(lease);
    expect(lease.mode).toBe("write");
    expect(await lease.release()).toBe("released");
  });
});

test("without `replicas`, a lock sends only its acquire and its release", async () => {
  const holdfast = await scene.client(ioredis);
  await holdfast.mutex(scene.name).run(() => sleep(SHORT_MS));
  const { sent, stop } = await startMonitor(scene.master);
  await holdfast.mutex(scene.name).run(() => {});
  expect((await sent()).map(([command]) => command).filter((command) => command !== "replconf")).toEqual([
    "evalsha",
    "evalsha",
  ]);
  stop();
});

test("`replicas` rejects GLIDE and invalid numbers", async () => {
  await expect(scene.client(glide, { replicas })).rejects.toBeInstanceOf(UnsupportedError);
  for (const wrong of [
    { atLeast: 0, timeoutMs: 100 },
    { atLeast: 1, timeoutMs: 2_000 },
    { atLeast: 1.5, timeoutMs: 1 },
  ]) {
    await expect(scene.client(ioredis, { replicas: wrong })).rejects.toThrow(RangeError);
  }
});
