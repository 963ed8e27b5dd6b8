/** Taking a lock away from its holder, on every store; or that a kind which cannot says so. */
import { expect, test } from "vitest";
import { LeaseLostError, UnsupportedError } from "../core/errors.js";
import { LONG_MS } from "./delays.js";
import type { Scene } from "./subject.js";

/** Registers the cases. */
export function forcedReleaseContract(scene: Scene): void {
  test("a forced release aborts the holder's signal at once and hands over", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const aborted = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    expect(await scene.rival.forceRelease({ token: lease.token })).toBe(true);
    const next = await waiting;
    await aborted;
    expect(lease.signal.reason.reason).toBe("force-released");
    expect(() => lease.assertHeld()).toThrow("released by force");
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });

  test("a forced release that nobody waits for is still a loss", async () => {
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

/** Registers the case of a kind whose leases cannot be ended by force as a whole. */
export function noForcedReleaseContract(scene: Scene): void {
  test("a forced release is refused, and the holder keeps the lock", async () => {
    const lease = await scene.lock.acquire();
    await expect(scene.rival.forceRelease({ owner: lease.owner })).rejects.toThrow(UnsupportedError);
    lease.assertHeld();
    expect(await lease.release()).toBe("released");
  });
}
