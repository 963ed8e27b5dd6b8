/**
 * Timers run on the monotonic clock, which stops while the host is suspended. So holders once learned that their lease
 * had expired only at the next renewal, up to a third of `leaseMs` later.
 */
import { expect, test } from "vitest";
import type { LeaseLostError } from "../../src/core/errors.js";
import { lost, ScriptedLock } from "../unit/scripted-lock.js";

const BOUND_MS = 1_000;

test.each([
  ["renewed", { leaseMs: 3_600_000 }],
  ["not renewed", { leaseMs: 3_600_000, renew: false }],
  ["bounded by maxHoldMs", { leaseMs: 3_600_000, maxHoldMs: 7_200_000 }],
])("the signal of a lease that is %s aborts within a second after its host resumes", async (_how, options) => {
  for (const heldMs of [0, 1, 999, 12_345]) {
    const world = new ScriptedLock();
    const lease = await world.lock.acquire(options);
    let abortedAtMs: number | undefined;
    lease.signal.addEventListener("abort", () => {
      abortedAtMs = world.runtime.monotonicMs();
    });
    await world.runtime.advance(heldMs);
    world.runtime.stepWall(86_400_000);
    const wokeUpAtMs = world.runtime.monotonicMs();
    await world.runtime.advance(BOUND_MS);
    expect(abortedAtMs).toBeLessThanOrEqual(wokeUpAtMs + BOUND_MS);
    expect((lease.signal.reason as LeaseLostError).reason).toBe("expired");
    expect(world.sentOf("extend")).toEqual([]);
    // The interval for which the client record is refreshed.
    await world.runtime.advance(20_000);
    expect(world.runtime.running()).toBe(0);
  }
});

test("a lease aborts within a second after the host resumes, even if a renewal is in flight", async () => {
  const world = new ScriptedLock({ commandTimeoutMs: 60_000 });
  world.answers.extend = () => new Promise(() => {});
  const lease = await world.lock.acquire({ leaseMs: 3_600_000 });
  const { signal } = lease;
  await world.runtime.advance(1_200_000);
  expect(world.sentOf("extend")).toHaveLength(1);
  world.runtime.stepWall(86_400_000);
  await world.runtime.advance(BOUND_MS);
  expect(signal.aborted).toBe(true);
});

test("a suspension shorter than the rest of the lease does not end it, and it expires by the wall clock", async () => {
  const world = new ScriptedLock();
  world.answers.extend = () => Promise.reject(lost());
  const { signal } = await world.lock.acquire({ leaseMs: 3_600_000, renew: false });
  world.runtime.stepWall(1_800_000);
  // 99% of the hour, minus 2 ms, minus the half hour of the suspension.
  await world.runtime.advance(1_763_997);
  expect(signal.aborted).toBe(false);
  await world.runtime.advance(1);
  expect(signal.aborted).toBe(true);
});

test("a released lease leaves no timer", async () => {
  const world = new ScriptedLock();
  const leases = await Promise.all(Array.from({ length: 20 }, () => world.lock.acquire({ leaseMs: 3_600_000 })));
  for (const [i, lease] of leases.entries()) {
    await world.runtime.advance(777);
    expect(await lease.release()).toBe("released");
    expect(world.runtime.running(true)).toBe(0);
    if (i === leases.length - 1) await world.runtime.advance(20_000);
  }
  expect(world.runtime.running()).toBe(0);
});
