/** The contract suite for a read-write lock, which every store must pass. */
import { expect, test } from "vitest";
import { type ExportedLease, LeaseLostError, type ReadWriteLease, type ReadWriteLock } from "../index.js";
import { BRIEF_LEASE_MS, LONG_MS, sleep, until } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { forcedReasonContract } from "./forced-release.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Keys that may remain after all releases: the state with the weight of a writer, the holders, and the last token. */
const REMAINS = /(:fence|:holders|:read-write-lock:\{.*\})$/s;

/** Registers the tests. Call it inside a `describe` that names the store. */
export function readWriteLockContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.readWriteLock(name).write);
  forcedReasonContract(scene);
  const first = (): ReadWriteLock => scene.holdfast.readWriteLock(scene.name);
  const second = (): ReadWriteLock => scene.rivalHoldfast.readWriteLock(scene.name);
  const queued = (count: number): Promise<void> =>
    until(async () => (await first().read.inspect()).waiterCount === count, `${count} in the queue`);
  const release = (...leases: ReadWriteLease[]): Promise<unknown> =>
    Promise.all(leases.map((lease) => lease.release()));
  const LONG_WAIT = { waitMs: LONG_MS };

  test("readers share the lock, and a writer holds it alone", async () => {
    const readers = [await first().read.acquire(), await second().read.acquire(), await first().read.acquire()];
    expect(readers.map(({ mode }) => mode)).toEqual(["read", "read", "read"]);
    expect(await first().write.tryAcquire()).toBeNull();
    await release(...readers);
    const writer = await first().write.acquire({ waitMs: 0 });
    expect(writer.mode).toBe("write");
    expect(await second().read.tryAcquire()).toBeNull();
    expect(await second().write.tryAcquire()).toBeNull();
    await writer.release();
    await release(await second().read.acquire({ waitMs: 0 }));
  });

  test("readers that arrive after a waiting writer queue behind it and are granted together", async () => {
    const reader = await first().read.acquire();
    const writing = second().write.acquire(LONG_WAIT);
    await queued(1);
    expect(await first().read.tryAcquire()).toBeNull();
    const reading = [first().read.acquire(LONG_WAIT), second().read.acquire(LONG_WAIT)];
    await queued(3);
    await reader.release();
    const writer = await writing;
    expect((await first().read.inspect()).waiterCount).toBe(2);
    await writer.release();
    const readers = await Promise.all(reading);
    for (const { token } of readers) expect(token).toBeGreaterThan(writer.token);
    expect(new Set(readers.map(({ token }) => token)).size).toBe(2);
    await release(...readers);
  });

  test("when a waiting writer gives up, the readers behind it are granted immediately", async () => {
    const reader = await first().read.acquire();
    const controller = new AbortController();
    const writing = second().write.acquire({ ...LONG_WAIT, signal: controller.signal });
    writing.catch(() => {});
    await queued(1);
    const reading = first().read.acquire(LONG_WAIT);
    await queued(2);
    controller.abort();
    const secondReader = await reading;
    reader.assertHeld();
    await release(reader, secondReader);
  });

  test("the end of one read lease does not end another", async () => {
    const [a, b] = [await first().read.acquire({ leaseMs: LONG_MS }), await second().read.acquire()];
    const brief = await second().read.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    await b.release();
    await until(() => brief.validForMs() === 0, "the brief lease to end");
    expect(await first().write.tryAcquire()).toBeNull();
    const writing = second().write.acquire(LONG_WAIT);
    await queued(1);
    a.assertHeld();
    await a.release();
    await release(await writing);
  });

  test("a downgrade keeps the token and grants waiting readers, but no writer", async () => {
    const lease = await first().write.acquire();
    const { token } = lease;
    const reading = [second().read.acquire(LONG_WAIT), second().read.acquire(LONG_WAIT)];
    await queued(2);
    const writing = first().write.acquire(LONG_WAIT);
    await queued(3);
    await lease.downgrade();
    // Inspect before any re-check, because a re-check would hide a downgrade that notifies no waiter.
    const { holders, waiterCount } = await first().read.inspect();
    expect({ holders: holders.length, waiterCount }).toEqual({ holders: 3, waiterCount: 1 });
    expect(lease).toMatchObject({ mode: "read", token });
    const readers = await Promise.all(reading);
    lease.assertHeld();
    await lease.extend(LONG_MS);
    await lease.downgrade();
    expect((await first().read.inspect()).waiterCount).toBe(1);
    expect(await lease.release()).toBe("released");
    await release(...readers);
    await release(await writing);
  });

  test("the only reader can upgrade to a writer and gets a higher token", async () => {
    const lease = await first().read.acquire();
    const { token } = lease;
    expect(await lease.tryUpgrade()).toBe(lease);
    expect(lease.mode).toBe("write");
    expect(lease.token).toBeGreaterThan(token);
    expect(await second().read.tryAcquire()).toBeNull();
    expect(await lease.tryUpgrade()).toBe(lease);
    expect((await first().write.inspect()).holders).toMatchObject([{ token: lease.token, mode: "write" }]);
    await lease.extend(LONG_MS);
    await lease.downgrade();
    const reader = await second().read.acquire({ waitMs: 0 });
    expect(reader.token).toBeGreaterThan(lease.token);
    expect(await lease.release()).toBe("released");
    await reader.release();
  });

  test("with two readers, both upgrades fail without a wait and both keep reading", async () => {
    const [a, b] = [await first().read.acquire(), await second().read.acquire()];
    const { token } = a;
    expect(await Promise.all([a.tryUpgrade(), b.tryUpgrade()])).toEqual([null, null]);
    expect([a.mode, b.mode, a.token]).toEqual(["read", "read", token]);
    await b.release();
    expect(await a.tryUpgrade()).toBe(a);
    await a.release();
  });

  test("an upgrade overtakes a waiting writer, which is granted afterward", async () => {
    const lease = await first().read.acquire();
    const writing = second().write.acquire(LONG_WAIT);
    await queued(1);
    expect(await lease.tryUpgrade()).toBe(lease);
    await lease.release();
    const writer = await writing;
    expect(writer.token).toBeGreaterThan(lease.token);
    await writer.release();
  });

  test("an ended lease can neither upgrade nor downgrade", async () => {
    const stale = await first().read.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const { signal } = stale;
    const writer = await second().write.acquire(LONG_WAIT);
    await expect(stale.tryUpgrade()).rejects.toThrow(LeaseLostError);
    await expect(stale.downgrade()).rejects.toThrow(LeaseLostError);
    expect(signal.aborted).toBe(true);
    writer.assertHeld();
    expect((await first().write.inspect()).holders).toHaveLength(1);
    await writer.release();
    await expect(writer.downgrade()).rejects.toThrow(LeaseLostError);
    await expect(writer.tryUpgrade()).rejects.toThrow(LeaseLostError);
  });

  test("an upgrade of a lease that the server has lost fails with reason server-lost", async () => {
    const lease = await first().read.acquire({ leaseMs: LONG_MS });
    await scene.server.delete(...(await scene.server.keysWith(scene.name)));
    await expect(lease.tryUpgrade()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" });
    expect(lease.signal.aborted).toBe(true);
    await release(await second().write.acquire({ waitMs: 0 }));
  });

  test("upgrades and downgrades of one lease run in order, and release ends the lease in either mode", async () => {
    const lease = await first().write.acquire();
    await Promise.all([lease.downgrade(), lease.tryUpgrade(), lease.downgrade(), lease.tryUpgrade()]);
    expect(lease.mode).toBe("write");
    expect(await second().read.tryAcquire()).toBeNull();
    const upgrading = lease.tryUpgrade();
    await Promise.all([upgrading.catch(() => {}), lease.release()]);
    await release(await second().write.acquire({ waitMs: 0 }));
  });

  test("an exported lease keeps its mode in another client", async () => {
    const lease = await first().write.acquire();
    await lease.downgrade();
    const wire = JSON.stringify(lease.export());
    const adopted = (await scene.rivalHoldfast.adopt(JSON.parse(wire) as ExportedLease)) as ReadWriteLease;
    expect([adopted.mode, adopted.token]).toEqual(["read", lease.token]);
    await expect(scene.holdfast.adopt(JSON.parse(wire) as ExportedLease)).rejects.toMatchObject({
      reason: "handed-over",
    });
    const reader = await first().read.acquire({ waitMs: 0 });
    expect(await adopted.tryUpgrade()).toBeNull();
    await reader.release();
    expect(await adopted.tryUpgrade()).toBe(adopted);
    await adopted.release();
    const other = JSON.parse(wire) as ExportedLease;
    await expect(scene.holdfast.adopt({ ...other, mode: "both" as "read" })).rejects.toThrow(/mode must be "read" or/);
  });

  test("inspect shows readers and writers from either side of the lock", async () => {
    const readers = [await first().read.acquire({ label: "page" }), await second().read.acquire()];
    const writing = second().write.acquire({ ...LONG_WAIT, label: "rebuild" });
    await queued(1);
    for (const side of [first().read, second().write]) {
      const { holders, waiters, kind } = await side.inspect();
      expect(kind).toBe("read-write-lock");
      expect(holders.map(({ mode }) => mode)).toEqual(["read", "read"]);
      expect(holders[0]).toMatchObject({ label: "page", token: readers[0]?.token });
      expect(waiters).toMatchObject([{ label: "rebuild", mode: "write" }]);
    }
    await release(...readers);
    await release(await writing);
  });

  test("a forced release of one reader ends only its lease", async () => {
    const [a, b] = [await first().read.acquire(), await second().read.acquire()];
    expect(await first().write.forceRelease({ owner: b.owner })).toBe(true);
    await until(() => b.validForMs() === 0, "the reader to be notified");
    a.assertHeld();
    await expect(b.release()).rejects.toThrow(LeaseLostError);
    expect(await a.tryUpgrade()).toBe(a);
    await a.release();
  });

  test("readers never see a half-finished write, and no caller starves", async () => {
    const pair = [0, 0];
    let torn = 0;
    const write = async (): Promise<void> => {
      pair[0] = (pair[0] ?? 0) + 1;
      await sleep(1);
      pair[1] = (pair[1] ?? 0) + 1;
    };
    const read = async (): Promise<void> => {
      if (pair[0] !== pair[1]) torn += 1;
      await sleep(1);
    };
    const callers = Array.from({ length: 60 }, (_, i) => {
      const lock = i % 2 === 0 ? first() : second();
      return i % 4 === 0 ? lock.write.run(write, LONG_WAIT) : lock.read.run(read, LONG_WAIT);
    });
    await Promise.all(callers);
    expect({ pair, torn }).toEqual({ pair: [15, 15], torn: 0 });
  });
}

/** Registers the tests of the write lock, which must act as a mutex. */
export function writeLockContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.readWriteLock(name).write, { remains: REMAINS });
}
