/** Tests forced releases, or that a kind without this feature refuses them. */
import { expect, test } from "vitest";
import { type Lease, LeaseLostError, UnsupportedError } from "../index.js";
import { channels } from "../internal.js";
import { LONG_MS, SOON_MS } from "./delays.js";
import type { Scene } from "./subject.js";

/** Registers the tests for kinds that support forced releases. */
export function forcedReleaseContract(scene: Scene): void {
  test("a forced release aborts the holder's signal and grants the next waiter", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const aborted = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    expect(await scene.rival.forceRelease({ token: lease.token })).toBe(true);
    const next = await waiting;
    await aborted;
    expect(lease.signal.reason.reason).toBe("force-released");
    expect(() => lease.assertHeld()).toThrow("force-released");
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });

  test("a forced release without a waiter still ends the lease", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    expect(await scene.rival.forceRelease({ owner: lease.owner })).toBe(true);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    const next = await scene.rival.acquire({ waitMs: 0 });
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  test("a forced release does nothing when the holder has changed", async () => {
    const first = await scene.lock.acquire();
    await first.release();
    expect(await scene.lock.forceRelease({ owner: first.owner })).toBe(false);
    const second = await scene.rival.acquire();
    expect(await scene.lock.forceRelease({ owner: first.owner })).toBe(false);
    expect(await scene.lock.forceRelease({ token: first.token })).toBe(false);
    expect(await scene.lock.forceRelease({ owner: second.owner, token: first.token })).toBe(false);
    second.assertHeld();
    expect(await second.release()).toBe("released");
  });
}

/** Registers the test for kinds that report the reason for a forced release to the holder. */
export function forcedReasonContract(scene: Scene): void {
  test("a forced release reports its author and reason to the holder and to subscribers", async () => {
    const by = "ana@ops-1";
    for (const reason of ["stuck since 9:00", "%41 / -1\n\u0000\u2028💥 <script>", "é".repeat(128)]) {
      const published: unknown[] = [];
      const listener = (event: unknown): void => void published.push(event);
      channels.forced.subscribe(listener);
      channels.lost.subscribe(listener);
      try {
        const lease = await forced(scene, { by, reason });
        const { token, owner } = lease;
        expect(lease.signal.reason).toMatchObject({ reason: "force-released", token, forced: { by, reason } });
        expect(lease.signal.reason.message).toContain(`It was released by "${by}", because "`);
        expect(lease.signal.reason.message).toMatch(/^\P{Cc}*$/u);
        expect(lease.signal.reason.message.split("\u2028")).toHaveLength(1);
        const about = { lockName: scene.name, token, forced: { by, reason } };
        expect(published).toContainEqual(expect.objectContaining({ ...about, owner: "" }));
        expect(published).toContainEqual(expect.objectContaining({ ...about, owner, reason: "force-released" }));
        await lease.release().catch(() => {});
      } finally {
        channels.forced.unsubscribe(listener);
        channels.lost.unsubscribe(listener);
      }
    }
    const lease = await scene.lock.acquire();
    for (const wrong of [{ reason: "" }, { reason: "x".repeat(257) }, { by: 7 }]) {
      const refusal = await scene.rival
        .forceRelease({ token: lease.token, ...wrong } as never)
        .catch((e: unknown) => e);
      expect(refusal instanceof TypeError || refusal instanceof RangeError, JSON.stringify(wrong)).toBe(true);
    }
    expect(await lease.release()).toBe("released");
  });
}

/** Registers the test for kinds without forced releases. */
export function noForcedReleaseContract(scene: Scene): void {
  test("a forced release is refused, and the holder keeps the lock", async () => {
    const lease = await scene.lock.acquire();
    await expect(scene.rival.forceRelease({ owner: lease.owner })).rejects.toThrow(UnsupportedError);
    lease.assertHeld();
    expect(await lease.release()).toBe("released");
  });
}

/**
 * Acquires the lock, force-releases it, and returns the lost lease. Retries if the process was not subscribed yet,
 * because then it notices the loss only at its next renewal, and without the reason.
 */
async function forced(scene: Scene, said: { readonly by: string; readonly reason: string }): Promise<Lease> {
  for (let tries = 1; ; tries += 1) {
    const lease = await scene.lock.acquire({ leaseMs: SOON_MS });
    const aborted = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    expect(await scene.rival.forceRelease({ token: lease.token, ...said })).toBe(true);
    await aborted;
    if (lease.signal.reason.reason !== "server-lost" || tries === 10) return lease;
    await lease.release().catch(() => {});
  }
}
