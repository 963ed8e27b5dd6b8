/** Tests the lease of a holder: renewal, loss, release and close. */
import { expect, test } from "vitest";
import { ClosedError, type Lease, LeaseLostError } from "../index.js";
import { BRIEF_LEASE_MS, LONG_MS, SHORT_MS, sleep, until, withLeaseInTime } from "./delays.js";
import type { MakeLock, Scene } from "./subject.js";

/** Registers the tests. */
export function leaseContract(scene: Scene, makeLock: MakeLock): void {
  test("a lease is renewed for as long as it is held", () =>
    withLeaseInTime(async (leaseMs) => {
      await using lease = await scene.lock.acquire({ leaseMs, waitMs: LONG_MS });
      await sleep(3 * leaseMs);
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      await using other = await scene.rival.tryAcquire();
      expect(other).toBeNull();
      expect(await lease.release()).toBe("released");
    }));

  test("the signal of an expired lease aborts before the next holder is granted", () =>
    withLeaseInTime(async (leaseMs) => {
      const lease = await scene.lock.acquire({ leaseMs, renew: false, waitMs: LONG_MS });
      const { signal } = lease;
      let aborts = 0;
      signal.addEventListener("abort", () => {
        aborts += 1;
      });
      await using _next = await scene.rival.acquire({ waitMs: LONG_MS });
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBeInstanceOf(LeaseLostError);
      expect(signal.reason.reason).toBe("expired");
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
      await expect(lease.release()).rejects.toThrow(LeaseLostError);
      expect(aborts).toBe(1);
    }));

  test("an expired lease cannot release, extend or shorten the next holder's lease", async () => {
    const stale = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const fresh = await scene.rival.acquire({ waitMs: LONG_MS, leaseMs: LONG_MS });
    await expect(stale.release()).rejects.toThrow(LeaseLostError);
    await expect(stale.extend(LONG_MS)).rejects.toThrow(LeaseLostError);
    const [holder] = await scene.holders();
    expect(holder?.owner).toBe(fresh.owner);
    expect(holder?.leaseLeftMs).toBeGreaterThan(LONG_MS / 2);
    await fresh.extend(LONG_MS);
    expect(await fresh.release()).toBe("released");
  });

  test("releasing an expired lease that no other client has taken returns expired-unclaimed", async () => {
    const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    await until(async () => (await scene.holders(scene.rival)).length === 0, "the lease to end");
    expect(await lease.release()).toBe("expired-unclaimed");
    const next = await scene.rival.acquire({ waitMs: 0 });
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  test("extend renews the lease for at least the given time and never shortens it", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS, renew: false });
    await lease.extend(2 * LONG_MS);
    expect(lease.validForMs()).toBeGreaterThan(LONG_MS);
    const longMs = lease.validForMs();
    await lease.extend(BRIEF_LEASE_MS);
    expect(lease.validForMs()).toBeGreaterThan(longMs - LONG_MS / 2);
    const [holder] = await scene.holders();
    expect(holder?.leaseLeftMs).toBeGreaterThan(LONG_MS);
    await lease.release();
  });

  test("extend and renewals keep the token", () =>
    withLeaseInTime(async (leaseMs) => {
      await using lease = await scene.lock.acquire({ leaseMs, waitMs: LONG_MS });
      const { token } = lease;
      await lease.extend(leaseMs);
      await sleep(leaseMs);
      lease.assertHeld();
      expect(lease.token).toBe(token);
      expect((await scene.lock.inspect()).token).toBe(token);
      await lease.release();
    }));

  test("the client counts a lease as valid for less time than the server", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const validMs = lease.validForMs();
    const [holder] = await scene.holders();
    expect(validMs).toBeGreaterThan(0);
    expect(validMs).toBeLessThanOrEqual(LONG_MS * 0.99 - 2);
    expect(lease.validForMs()).toBeLessThan(holder?.leaseLeftMs ?? 0);
    await lease.release();
  });

  test("a lease granted by a release is valid for its full length", async () => {
    const first = await scene.lock.acquire();
    const waiting = scene.rival.acquire({ waitMs: LONG_MS, leaseMs: LONG_MS });
    await scene.queued(1);
    await sleep(2 * SHORT_MS);
    await first.release();
    const lease = await waiting;
    const validMs = lease.validForMs();
    const [holder] = await scene.holders();
    expect(validMs).toBeLessThan(LONG_MS);
    expect(validMs).toBeGreaterThan(LONG_MS / 2);
    expect(lease.validForMs()).toBeLessThan(holder?.leaseLeftMs ?? 0);
    await lease.release();
  });

  test("maxHoldMs ends a lease despite renewals", () =>
    withLeaseInTime(async (leaseMs) => {
      await using lease = await scene.lock.acquire({ leaseMs, maxHoldMs: 2 * leaseMs, waitMs: LONG_MS });
      await until(() => lease.signal.aborted, "the signal to abort");
      expect(lease.signal.reason.reason).toBe("max-hold");
      expect(lease.validForMs()).toBe(0);
      await using next = await scene.rival.acquire({ waitMs: LONG_MS });
      next.assertHeld();
    }));

  test("repeated releases return the first outcome", async () => {
    const lease = await scene.lock.acquire();
    const outcomes = await Promise.all([lease.release(), lease.release()]);
    expect([...outcomes, await lease.release()]).toEqual(["released", "released", "released"]);
    expect(lease.validForMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(lease.signal.aborted).toBe(false);
  });

  test("disposal releases the lease and does not throw if it was lost", async () => {
    {
      await using lease = await scene.lock.acquire();
      lease.assertHeld();
    }
    const lease = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const next = await scene.rival.acquire({ waitMs: LONG_MS });
    await lease[Symbol.asyncDispose]();
    await next.release();
  });

  test("run returns the result of the work and releases the lock", async () => {
    expect(await scene.lock.run((lease) => lease.name)).toBe(scene.name);
    expect(await scene.holders()).toEqual([]);
  });

  test("run fails with the error of the work, even if the lease was lost", async () => {
    const fault = new Error("the work failed");
    await expect(scene.lock.run(() => Promise.reject(fault))).rejects.toBe(fault);
    const work = async (): Promise<never> => {
      await (await scene.rival.acquire({ waitMs: LONG_MS })).release();
      throw fault;
    };
    await expect(scene.lock.run(work, { leaseMs: BRIEF_LEASE_MS, renew: false })).rejects.toBe(fault);
    expect(await scene.holders()).toEqual([]);
  });

  test("run fails with LeaseLostError if the lease was lost and the work did not notice", async () => {
    const work = async (): Promise<void> => {
      await (await scene.rival.acquire({ waitMs: LONG_MS })).release();
    };
    await expect(scene.lock.run(work, { leaseMs: BRIEF_LEASE_MS, renew: false })).rejects.toThrow(LeaseLostError);
  });

  test("run with a release in the background passes the lock on to its own next run and to a waiter", async () => {
    const errors: unknown[] = [];
    const options = { release: "background", onReleaseError: errors.push.bind(errors), waitMs: LONG_MS } as const;
    const tokens: number[] = [];
    for (let i = 0; i < 5; i += 1) tokens.push(await scene.lock.run(({ token }) => token, options));
    const fault = new Error("the work failed");
    await expect(scene.lock.run(() => Promise.reject(fault), options)).rejects.toBe(fault);
    let waiting: Promise<Lease> | undefined;
    const work = async (lease: Lease): Promise<void> => {
      tokens.push(lease.token);
      waiting = scene.rival.acquire({ waitMs: LONG_MS });
      await scene.queued(1);
    };
    await scene.lock.run(work, options);
    const next = await waiting;
    tokens.push(next?.token ?? 0);
    await next?.release();
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    await until(async () => (await scene.holders()).length === 0, "the releases to be done");
    expect(errors).toEqual([]);
  });

  test("run with a release in the background still fails with LeaseLostError if the lease was lost", async () => {
    const work = async (): Promise<void> => {
      await (await scene.rival.acquire({ waitMs: LONG_MS })).release();
    };
    const options = { leaseMs: BRIEF_LEASE_MS, renew: false, release: "background" } as const;
    await expect(scene.lock.run(work, options)).rejects.toThrow(LeaseLostError);
  });

  test("close awaits releases in the background", async () => {
    const holdfast = await scene.another();
    const lock = await makeLock(holdfast, scene.name);
    await lock.run(() => {}, { release: "background" });
    await holdfast.close();
    const next = await scene.rival.tryAcquire();
    expect(next).not.toBeNull();
    await next?.release();
  });

  test("close releases leases, aborts their signals and ends waits", async () => {
    const holdfast = await scene.another();
    const lock = await makeLock(holdfast, scene.name);
    const other = await makeLock(holdfast, `${scene.name}:other`);
    const lease = await lock.acquire();
    const blocker = await (await makeLock(scene.holdfast, `${scene.name}:other`)).acquire();
    const waiting = other.acquire({ waitMs: Infinity });
    waiting.catch(() => {});
    const { signal } = lease;
    await holdfast.close();
    expect(signal.aborted).toBe(true);
    expect(await lease.release()).toBe("released");
    await expect(waiting).rejects.toThrow(ClosedError);
    await expect(lock.acquire()).rejects.toThrow(ClosedError);
    await blocker.release();
    const next = await scene.lock.acquire({ waitMs: 0 });
    await next.release();
  });
}
