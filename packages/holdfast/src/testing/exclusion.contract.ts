/** Tests mutual exclusion and the order of waiters, for every exclusive lock. */
import { expect, test } from "vitest";
import { AcquireTimeoutError, type Lease } from "../index.js";
import { MultiLease } from "../internal.js";
import { BRIEF_LEASE_MS, endOf, LONG_MS, SHORT_MS, SOON_MS, sleep, withLeaseInTime } from "./delays.js";
import type { Scene } from "./subject.js";

/** Registers the tests. @param hasQueue  whether waiters are served in order of arrival */
export function exclusionContract(scene: Scene, hasQueue: boolean = true): void {
  if (hasQueue) orderContract(scene);
  const queued = (count: number): Promise<void> => scene.queued(count);

  test("a held lock refuses a second holder until it is released", async () => {
    const lease = await scene.lock.acquire({ waitMs: 0 });
    expect(await scene.rival.tryAcquire()).toBeNull();
    await lease.release();
    const next = await scene.rival.acquire({ waitMs: 0 });
    await next.release();
  });

  test("a second acquire via the same object is a second owner", async () => {
    const lease = await scene.lock.acquire();
    expect(await scene.lock.tryAcquire()).toBeNull();
    await expect(scene.lock.acquire({ waitMs: 0 })).rejects.toThrow(AcquireTimeoutError);
    expect(lease.validForMs()).toBeGreaterThan(0);
    expect(await lease.release()).toBe("released");
  });

  test("a release grants the lock to the waiter, whose release frees it", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await queued(1);
    await lease.release();
    const second = await waiting;
    expect(await scene.lock.tryAcquire()).toBeNull();
    await second.release();
    const third = await scene.lock.acquire({ waitMs: 0 });
    await third.release();
  });

  test("a counter that only the lock protects loses no increment", async () => {
    let counter = 0;
    const work = async (): Promise<void> => {
      const seen = counter;
      await sleep(1);
      counter = seen + 1;
    };
    const locks = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? scene.lock : scene.rival));
    await Promise.all(locks.map((lock) => lock.run(work, { waitMs: LONG_MS })));
    expect(counter).toBe(40);
  });

  test("a wait ends after waitMs, not before, with an error that names the holder", async () => {
    const lease = await scene.lock.acquire({ label: "nightly report", leaseMs: LONG_MS });
    const startedAtMs = performance.now();
    const error = await endOf(() => scene.rival.acquire({ waitMs: 2 * SHORT_MS }));
    const waitedMs = performance.now() - startedAtMs;
    if (!(error instanceof AcquireTimeoutError)) throw error;
    expect(waitedMs).toBeGreaterThanOrEqual(2 * SHORT_MS - 2);
    expect(error.code).toBe("ERR_LOCK_ACQUIRE_TIMEOUT");
    expect(error.lockName).toBe(scene.name);
    // For a multi-lock, the error names the member that was not acquired.
    const held = (lease instanceof MultiLease ? lease.leases : [lease]).find(
      ({ owner }) => owner === error.holder?.owner,
    );
    expect(held).toBeDefined();
    expect(error.holder?.label).toBe("nightly report");
    expect(error.holder?.leaseLeftMs).toBeGreaterThan(0);
    expect(error.token).toBe(held?.token);
    await lease.release();
    const next = await scene.lock.acquire({ waitMs: 0 });
    await next.release();
  });

  test("waiters that time out together all learn the holder and leave nothing behind", async () => {
    const lease = await scene.lock.acquire({ label: "nightly report", leaseMs: LONG_MS });
    const ends = await Promise.all(
      Array.from({ length: 40 }, () => endOf(() => scene.rival.acquire({ waitMs: 2 * SHORT_MS }))),
    );
    expect(new Set(ends).size).toBe(40);
    for (const error of ends) {
      expect(error).toBeInstanceOf(AcquireTimeoutError);
      expect(error).toMatchObject({ holder: { label: "nightly report", clientName: "first" }, isOwn: false });
    }
    expect((await scene.lock.inspect()).waiterCount).toBe(0);
    await lease.release();
    expect(await scene.holders()).toEqual([]);
  });

  test("a waiter that times out leaves the queue", async () => {
    const lease = await scene.lock.acquire();
    expect(await endOf(() => scene.rival.acquire({ waitMs: SHORT_MS }))).toBeInstanceOf(AcquireTimeoutError);
    expect((await scene.lock.inspect()).waiterCount).toBe(0);
    await lease.release();
    expect(await scene.holders()).toEqual([]);
  });

  test("a wait can outlast the leaseMs of a holder that renews", () =>
    withLeaseInTime(async (leaseMs) => {
      const lease = await scene.lock.acquire({ leaseMs });
      const waiting = scene.rival.acquire({ waitMs: LONG_MS });
      await sleep(2 * leaseMs);
      const leftMs = lease.validForMs();
      await lease.release().catch(() => {});
      await (await waiting).release();
      expect(leftMs).toBeGreaterThan(0);
    }));

  test("an aborted wait fails with the reason of the signal and leaves nothing behind", async () => {
    const lease = await scene.lock.acquire();
    const controller = new AbortController();
    const waiting = scene.rival.acquire({ waitMs: Infinity, signal: controller.signal });
    await queued(1);
    const reason = { why: "the user went away" };
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await queued(0);
    await lease.release();
    expect(await scene.holders()).toEqual([]);
  });

  test("an acquire with an already aborted signal sends nothing", async () => {
    const { token } = await scene.lock.inspect();
    const reason = new Error("too late");
    await expect(scene.lock.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect((await scene.lock.inspect()).token).toBe(token);
  });

  test("an abort that races with the grant does not block the lock", async () => {
    for (let i = 0; i < 20; i += 1) {
      const lease = await scene.lock.acquire();
      const controller = new AbortController();
      const waiting = scene.rival.acquire({ waitMs: LONG_MS, signal: controller.signal }).catch(() => null);
      if (i % 2 === 0) await queued(1);
      const releasing = lease.release();
      if (i % 3 !== 0) await Promise.resolve();
      controller.abort();
      await releasing;
      await (await waiting)?.release();
    }
    const startedAtMs = performance.now();
    const next = await scene.lock.acquire({ waitMs: LONG_MS });
    expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);
    await next.release();
  });

  test("an abort after the grant does not end the lease", async () => {
    const controller = new AbortController();
    const lease = await scene.lock.acquire({ signal: controller.signal });
    controller.abort();
    expect(lease.validForMs()).toBeGreaterThan(0);
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe("released");
  });

  test("a waiter is granted soon after the lease of the holder expires", async () => {
    const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const startedAtMs = performance.now();
    const next = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(performance.now() - startedAtMs).toBeLessThan(BRIEF_LEASE_MS + SOON_MS);
    expect(lease.validForMs()).toBe(0);
    await next.release();
  });

  test("a released lock leaves only keys that expire on the server", async () => {
    await Promise.all(
      [scene.lock, scene.rival, scene.lock].map((lock) => lock.run(() => sleep(1), { waitMs: LONG_MS })),
    );
    const left = await scene.server.keysWith(scene.name);
    for (const key of left) {
      expect(key).toMatch(scene.remains);
      expect(await scene.server.pttl(key)).toBeGreaterThan(0);
    }
  });
}

/** Registers the tests for kinds whose waiters have a queue. */
function orderContract(scene: Scene): void {
  const queued = (count: number): Promise<void> => scene.queued(count);

  test("waiters are granted in order of arrival", async () => {
    const lease = await scene.lock.acquire();
    const order: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let i = 0; i < 6; i += 1) {
      const lock = i % 2 === 0 ? scene.lock : scene.rival;
      waiting.push(
        lock.run(
          () => {
            order.push(i);
          },
          { waitMs: LONG_MS, fairness: "strict" },
        ),
      );
      await queued(i + 1);
    }
    await lease.release();
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("a later caller does not overtake a waiter", async () => {
    const lease = await scene.lock.acquire();
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await queued(1);
    const releasing = lease.release();
    expect(await scene.lock.tryAcquire()).toBeNull();
    await releasing;
    await (await waiting).release();
  });

  test("tokens rise with every grant, immediate or from the queue", async () => {
    const tokens: number[] = [];
    const first = await scene.lock.acquire();
    const waiting = [scene.rival.acquire({ waitMs: LONG_MS })];
    await queued(1);
    waiting.push(scene.lock.acquire({ waitMs: LONG_MS }));
    await queued(2);
    let lease: Lease | undefined = first;
    while (lease !== undefined) {
      tokens.push(lease.token);
      await lease.release();
      lease = await waiting.shift();
    }
    const last = await scene.rival.acquire();
    tokens.push(last.token);
    await last.release();
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
    expect(tokens.toSorted((a, b) => a - b)).toEqual(tokens);
    expect(new Set(tokens).size).toBe(4);
  });
}
