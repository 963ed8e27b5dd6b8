/** A user's test fakes timers, uses a lock and restores the real timers. Timers set with the fakes never fire. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";

afterEach(() => void vi.useRealTimers());

/** Resolves once the lease of that owner has been renewed `times` times. */
function renewals(owner: string, times: number): Promise<void> {
  return new Promise((resolve) => {
    let count = 0;
    const onRenew = (message: unknown): void => {
      const { owner: renewed, error } = message as { owner: string; error?: unknown };
      if (renewed === owner && error === undefined && ++count === times) resolve();
    };
    subscribe("holdfast:renew", onRenew);
    onTestFinished(() => void unsubscribe("holdfast:renew", onRenew));
  });
}

function fresh(): ReturnType<typeof createHoldfast> {
  const holdfast = createHoldfast({ store: embedded(), commandTimeoutMs: 30_000 });
  onTestFinished(async () => void (await holdfast.close()));
  return holdfast;
}

describe("fake timers", () => {
  it("an embedded lock works while timers are faked and afterwards", async () => {
    const mutex = fresh().mutex("a");
    vi.useFakeTimers();
    await (await mutex.acquire()).release();
    vi.useRealTimers();
    await (await mutex.acquire()).release();
  });

  it("an embedded server whose requests were scheduled with a faked setImmediate continues with the real one", async () => {
    vi.useFakeTimers();
    vi.resetModules();
    const { embedded: loadedWhileFaked } = await import("@holdfast/embedded");
    const store = loadedWhileFaked();
    const holdfast = createHoldfast({ store, commandTimeoutMs: 30_000 });
    const first = holdfast.mutex("a").acquire();
    await Promise.resolve();
    vi.useRealTimers();
    onTestFinished(async () => void (await holdfast.close()));
    const second = holdfast.mutex("b").acquire();
    await (await first).release();
    await (await second).release();
  });

  it("a lease is renewed on real timers after an earlier lock was acquired with fake ones", async () => {
    const holdfast = fresh();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await holdfast.mutex("earlier").acquire();
    await new Promise((resolve) => setImmediate(resolve));
    vi.useRealTimers();
    const pastMs = performance.now() + 2_100;
    while (performance.now() < pastMs) await new Promise((resolve) => setTimeout(resolve, 50));
    const lease = await holdfast.mutex("later").acquire({ leaseMs: 7_500 });
    await renewals(lease.owner, 2);
    expect(lease.signal.aborted).toBe(false);
  });

  it("a lease acquired with fake timers is renewed on real ones", async () => {
    const holdfast = fresh();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const lease = await holdfast.mutex("short").acquire({ leaseMs: 6_000 });
    vi.useRealTimers();
    const pastMs = performance.now() + 2_100;
    while (performance.now() < pastMs) await new Promise((resolve) => setTimeout(resolve, 50));
    await holdfast.mutex("other").acquire();
    await renewals(lease.owner, 1);
  });

  it("a lease expires on real timers after fake ones were used", async () => {
    const holdfast = fresh();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await holdfast.mutex("earlier").acquire();
    vi.useRealTimers();
    const pastMs = performance.now() + 2_100;
    while (performance.now() < pastMs) await new Promise((resolve) => setTimeout(resolve, 50));
    const lease = await holdfast.mutex("later").acquire({ leaseMs: 3_000, renew: false });
    await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
  });
});
