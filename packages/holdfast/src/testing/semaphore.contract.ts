/** The contract suite for a semaphore, which every store must pass. */
import { expect, test } from "vitest";
import {
  CapacityMismatchError,
  type ExportedLease,
  LeaseLostError,
  type Semaphore,
  type SemaphoreLease,
} from "../index.js";
import { BRIEF_LEASE_MS, LONG_MS, SHORT_MS, SOON_MS, sleep, until, withLeaseInTime } from "./delays.js";
import { forcedReasonContract } from "./forced-release.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Keys that may remain after all releases: the state with the number of permits, the holders, and the last token. */
export const REMAINS: RegExp = /(:fence|:holders|:semaphore:\{.*\})$/s;

/** Registers the tests. Call it inside a `describe` that names the store. */
export function semaphoreContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.semaphore(name, { permits: 5 }));
  forcedReasonContract(scene);
  const first = (permits = 5): Semaphore => scene.holdfast.semaphore(scene.name, { permits });
  const second = (permits = 5): Semaphore => scene.rivalHoldfast.semaphore(scene.name, { permits });
  const queued = (count: number): Promise<void> =>
    until(async () => (await first().inspect()).waiterCount === count, `${count} in the queue`);
  const release = (...leases: SemaphoreLease[]): Promise<unknown> =>
    Promise.all(leases.map((lease) => lease.release()));

  test("leases of any size never hold more permits than exist", async () => {
    const leases = [await first().acquire({ permits: 2 }), await second().acquire({ permits: 2 })];
    expect(await first().tryAcquire({ permits: 2 })).toBeNull();
    leases.push((await second().tryAcquire()) as SemaphoreLease);
    expect(leases.map(({ permits }) => permits)).toEqual([2, 2, 1]);
    expect(await first().tryAcquire()).toBeNull();
    expect(await first().inspect()).toMatchObject({ capacity: 5, used: 5 });
    await release(...leases);
    const all = await first().acquire({ permits: 5, waitMs: 0 });
    await all.release();
    expect(await first().inspect()).toMatchObject({ capacity: 5, used: 0, holders: [] });
  });

  test("a lease gets the smallest free slots, and no two leases share one", async () => {
    const [a, b, c] = [await first().acquire({ permits: 2 }), await second().acquire(), await first().acquire()];
    expect([a.slots, b.slots, c.slots]).toEqual([[0, 1], [2], [3]]);
    await b.release();
    await a.release();
    const d = await second().acquire({ permits: 3 });
    expect(d.slots).toEqual([0, 1, 2]);
    const waiting = second().acquire({ permits: 2, waitMs: LONG_MS });
    await queued(1);
    await c.release();
    const e = await waiting;
    expect(e.slots).toEqual([3, 4]);
    expect((await first().inspect()).holders.map(({ slots }) => slots)).toEqual([d.slots, e.slots]);
    await release(d, e);
    const f = await first().acquire();
    expect(f.slots).toEqual([0]);
    await f.release();
  });

  test("a lease keeps its slots while other leases come and go", async () => {
    const [a, b] = [await first().acquire(), await first().acquire({ leaseMs: SOON_MS })];
    await a.release();
    await b.extend(LONG_MS);
    expect(b.slots).toEqual([1]);
    const c = await second().acquire({ permits: 4 });
    expect(c.slots).toEqual([0, 2, 3, 4]);
    await release(b, c);
  });

  test("a caller that wants few permits does not overtake a waiter that wants many", async () => {
    const [a, b] = [await first().acquire({ permits: 3 }), await second().acquire()];
    const tokenOf = ({ token }: SemaphoreLease): number => token;
    const big = second().run(tokenOf, { permits: 4, waitMs: LONG_MS });
    await queued(1);
    // One permit is free, but it is reserved for the first waiter.
    expect(await first().tryAcquire()).toBeNull();
    const small = first().run(tokenOf, { waitMs: LONG_MS });
    await queued(2);
    await b.release();
    expect((await first().inspect()).waiterCount).toBe(2);
    await a.release();
    expect(await small).toBeGreaterThan(await big);
  });

  test("when a waiter gives up, the next one is granted immediately if its permits are free", async () => {
    const a = await first().acquire({ permits: 3 });
    const controller = new AbortController();
    const big = second().acquire({ permits: 5, waitMs: LONG_MS, signal: controller.signal });
    await queued(1);
    const small = first().acquire({ permits: 2, waitMs: LONG_MS });
    await queued(2);
    controller.abort(new Error("no longer"));
    await expect(big).rejects.toThrow("no longer");
    const b = await small;
    a.assertHeld();
    await release(a, b);
  });

  test("releasing an expired or released lease adds no permits", async () => {
    const stale = await first().acquire({ permits: 3, leaseMs: BRIEF_LEASE_MS, renew: false });
    const all = await second().acquire({ permits: 5, waitMs: LONG_MS });
    await expect(stale.release()).rejects.toThrow(LeaseLostError);
    await expect(stale.release()).rejects.toThrow(LeaseLostError);
    expect(await first().tryAcquire()).toBeNull();
    await all.release();
    expect(await all.release()).toBe("released");
    expect(await first().inspect()).toMatchObject({ capacity: 5, used: 0 });
    const again = await first().acquire({ permits: 5 });
    expect(await second().tryAcquire()).toBeNull();
    await again.release();
  });

  test("the expiry or renewal of one lease does not end another holder's lease", () =>
    withLeaseInTime(async (leaseMs) => {
      await using long = await first().acquire({ leaseMs: LONG_MS, renew: false, waitMs: LONG_MS });
      await using brief = await second().acquire({ permits: 2, leaseMs, renew: false, waitMs: LONG_MS });
      await using renewed = await second().acquire({ leaseMs, waitMs: LONG_MS });
      // This fits only once the two permits of the brief lease are free again. Then all five are held.
      await using next = await first().acquire({ permits: 3, waitMs: LONG_MS, leaseMs: LONG_MS });
      expect(brief.validForMs()).toBe(0);
      long.assertHeld();
      renewed.assertHeld();
      await using other = await second().tryAcquire();
      expect(other).toBeNull();
      expect(await long.release()).toBe("released");
      expect(await renewed.release()).toBe("released");
      expect(await next.release()).toBe("released");
    }));

  test("the permits and slots of a crashed holder become free when its lease ends", async () => {
    const a = await first().acquire({ permits: 2 });
    await second().acquire({ permits: 3, leaseMs: BRIEF_LEASE_MS, renew: false });
    const waiting = [first().acquire({ waitMs: LONG_MS }), first().acquire({ permits: 2, waitMs: LONG_MS })];
    const leases = await Promise.all(waiting);
    expect(leases.map(({ slots }) => slots)).toEqual([[2], [3, 4]]);
    await release(a, ...leases);
  });

  test("a client that declares another capacity fails with both numbers and a remedy", async () => {
    await (await first(5).acquire()).release();
    const error: unknown = await second(4)
      .acquire()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CapacityMismatchError);
    expect(error).toMatchObject({ code: "ERR_LOCK_CAPACITY_MISMATCH", capacity: 5, declared: 4, permits: undefined });
    expect(String(error)).toContain("resize");
    await expect(second(4).tryAcquire()).rejects.toThrow(CapacityMismatchError);
    expect(await first().inspect()).toMatchObject({ holders: [], waiterCount: 0 });
  });

  test("a resize to more permits grants them to waiters immediately", async () => {
    const all = await first().acquire({ permits: 5 });
    const waiting = [second().acquire({ permits: 2, waitMs: LONG_MS }), second().acquire({ waitMs: LONG_MS })];
    await queued(2);
    await first().resize(8);
    const leases = await Promise.all(waiting);
    expect(await second().capacity()).toBe(8);
    expect(await first().inspect()).toMatchObject({ capacity: 8, used: 8 });
    expect(await first().tryAcquire()).toBeNull();
    await release(all, ...leases);
    // A process that declares a capacity that was once in effect keeps working. Any other capacity is refused.
    await second(8).resize(6);
    await release(await first(5).acquire({ permits: 5 }), await first(6).acquire());
    await release(await first(8).acquire({ permits: 6 }));
    await expect(first(7).acquire()).rejects.toThrow(CapacityMismatchError);
  });

  test("a resize to fewer permits ends no lease and grants nothing until enough are released", async () => {
    const [a, b] = [await first().acquire({ permits: 3 }), await second().acquire({ permits: 2 })];
    await first().resize(2);
    expect(await first().inspect()).toMatchObject({ capacity: 2, used: 5 });
    a.assertHeld();
    await a.extend(LONG_MS);
    const waiting = second().acquire({ waitMs: LONG_MS });
    await queued(1);
    await a.release();
    expect((await first().inspect()).waiterCount).toBe(1);
    await b.release();
    const c = await waiting;
    await release(c);
    await release(await first().acquire({ permits: 2 }));
  });

  test("after a resize, a request or a waiter for more permits than exist is refused", async () => {
    const a = await first().acquire({ permits: 5 });
    const big = second().acquire({ permits: 5, waitMs: LONG_MS });
    big.catch(() => {});
    await queued(1);
    await first().resize(4);
    await a.release();
    await expect(big).rejects.toMatchObject({ code: "ERR_LOCK_CAPACITY_MISMATCH", capacity: 4, permits: 5 });
    await expect(first().acquire({ permits: 5 })).rejects.toThrow(CapacityMismatchError);
    expect(await first().inspect()).toMatchObject({ waiterCount: 0, used: 0 });
    await release(await first().acquire({ permits: 4 }));
  });

  test("invalid numbers of permits are rejected with name and range before a request is sent", async () => {
    for (const permits of [0, -1, 1.5, Number.NaN, 1_000_001, "3", null, undefined]) {
      const options = { permits } as { permits: number };
      expect(() => scene.holdfast.semaphore(scene.name, options)).toThrow(/permits .*1 to 1000000/);
      await expect(first().resize(permits as number)).rejects.toThrow(/permits .*1 to 1000000/);
      if (permits !== undefined) await expect(first().acquire(options)).rejects.toThrow(/permits .*1 to 5/);
    }
    await expect(first().acquire({ permits: 6 })).rejects.toThrow(RangeError);
    await expect(first().tryAcquire({ permits: 6 })).rejects.toThrow(RangeError);
    expect(() => (scene.holdfast.semaphore as (name: string) => unknown)(scene.name)).toThrow(TypeError);
    expect(await scene.server.keysWith(scene.name)).toEqual([]);
  });

  test("inspect shows the permits of each holder and each waiter", async () => {
    const a = await first().acquire({ permits: 3, label: "import", leaseMs: LONG_MS });
    const waiting = second().acquire({ permits: 4, label: "export", waitMs: LONG_MS });
    await queued(1);
    const { holders, waiters, capacity, used } = await second().inspect();
    expect({ capacity, used }).toEqual({ capacity: 5, used: 3 });
    expect(holders).toMatchObject([{ owner: a.owner, token: a.token, label: "import", permits: 3, slots: [0, 1, 2] }]);
    expect(waiters).toMatchObject([{ label: "export", permits: 4 }]);
    await a.release();
    await (await waiting).release();
  });

  test("a lease moves to another client with all its permits and slots", async () => {
    const other = await first().acquire();
    const lease = await first().acquire({ permits: 2 });
    const wire = JSON.stringify(lease.export());
    const adopted = (await scene.rivalHoldfast.adopt(JSON.parse(wire) as ExportedLease)) as SemaphoreLease;
    await expect(scene.holdfast.adopt(JSON.parse(wire) as ExportedLease)).rejects.toMatchObject({
      reason: "handed-over",
    });
    const { permits, slots, token } = adopted;
    expect({ permits, slots, token }).toEqual({ permits: 2, slots: [1, 2], token: lease.token });
    expect(await first().tryAcquire({ permits: 3 })).toBeNull();
    await release(other, adopted);
    expect(await first().inspect()).toMatchObject({ used: 0 });
  });

  test("a forced release frees only the permits of that holder", async () => {
    const [a, b] = [await first().acquire({ permits: 3 }), await first().acquire({ permits: 2 })];
    const waiting = second().acquire({ permits: 2, waitMs: LONG_MS });
    await queued(1);
    expect(await second().forceRelease({ token: b.token })).toBe(true);
    const c = await waiting;
    expect(c.slots).toEqual(b.slots);
    await until(() => b.validForMs() === 0, "the old holder to be notified");
    a.assertHeld();
    await expect(b.release()).rejects.toThrow(LeaseLostError);
    await release(a, c);
  });

  test("many callers with different weights never exceed the capacity, and all are served", async () => {
    let used = 0;
    let most = 0;
    const work = async ({ permits }: SemaphoreLease): Promise<void> => {
      used += permits;
      most = Math.max(most, used);
      await sleep(1);
      used -= permits;
    };
    const callers = Array.from({ length: 60 }, (_, i) =>
      (i % 2 === 0 ? first() : second()).run(work, { permits: (i % 5) + 1, waitMs: LONG_MS }),
    );
    await Promise.all(callers);
    expect(most).toBeLessThanOrEqual(5);
    expect(most).toBeGreaterThan(3);
  });

  test("keys outlive every lease in them and then expire", async () => {
    const longMs = 20 * LONG_MS;
    const a = await first().acquire({ leaseMs: longMs, renew: false });
    const b = await second().acquire({ leaseMs: BRIEF_LEASE_MS });
    await sleep(SHORT_MS);
    await b.release();
    for (const key of await scene.server.keysWith(scene.name)) {
      expect(await scene.server.pttl(key)).toBeGreaterThan(longMs);
    }
    await a.release();
    await first().resize(5);
    for (const key of await scene.server.keysWith(scene.name)) {
      expect(key).toMatch(REMAINS);
      expect(await scene.server.pttl(key)).toBeGreaterThan(0);
    }
  });
}
