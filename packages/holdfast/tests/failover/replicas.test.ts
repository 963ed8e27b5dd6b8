/** `replicas`: a grant or a renewal counts only once so many replicas have it. */
import { describe, expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { type Lease, StoreError, UnsupportedError } from "../../src/index.js";
import { LONG_MS, SHORT_MS, sleep, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, outcomeOf } from "../faults/scene.js";
import { useFailoverScene } from "./failover-scene.js";

const scene = useFailoverScene();
const replicas = { atLeast: 1, timeoutMs: 1_000 };
/** For those who wait in vain. */
const brisk = { atLeast: 1, timeoutMs: 1_000 };

describe.each([ioredis, nodeRedis])("$name", (library) => {
  test("a lease that is returned is on the replica, whether it was granted by an answer or by a message", async () => {
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

  test("with too few replicas nothing is granted, what was granted is given back, and a renewal does not count", async () => {
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

  test("with too few replicas a lease is not extended to a length of which the server has to be asked first", async () => {
    const { name } = scene;
    const holdfast = await scene.client(library, { replicas });
    const lease = await holdfast.mutex(name).acquire({ leaseMs: 10_000, renew: false });
    await scene.cutReplication();
    // Longer than any lease that the server has been told of, so the failover guard asks before the script is sent.
    const { error } = await outcomeOf(lease.extend(600_000));
    expect(String(error)).toMatch(/only 0 of 1 replicas acknowledged/);
    expect(lease.validForMs()).toBeLessThan(10_000);
  });
});

describe("what too few replicas have is given back, or stays as it was", () => {
  const few = /only 0 of 1 replicas acknowledged/;
  const free = (): Promise<void> =>
    until(async () => (await scene.master.command("EXISTS", `hf:mutex:{${scene.name}}`)) === 0, "it is given back");

  test("by a signal", async () => {
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

  test("by an adoption", async () => {
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

  test("by a change of sides: it is a reader's until a change counts, and asking again settles it", async () => {
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

test("without the option nothing is sent beside the acquire", async () => {
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

test("a client whose connections cannot be told apart is refused, and so is a wrong number", async () => {
  await expect(scene.client(glide, { replicas })).rejects.toBeInstanceOf(UnsupportedError);
  for (const wrong of [
    { atLeast: 0, timeoutMs: 100 },
    { atLeast: 1, timeoutMs: 2_000 },
    { atLeast: 1.5, timeoutMs: 1 },
  ]) {
    await expect(scene.client(ioredis, { replicas: wrong })).rejects.toThrow(RangeError);
  }
});
