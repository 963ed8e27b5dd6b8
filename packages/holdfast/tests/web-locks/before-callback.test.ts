/** Requests whose lease ends between its grant and its callback, for example because the process was paused there. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfastOn } from "../../src/holdfast.js";
import type { GrantEvent, Holdfast, Lease } from "../../src/index.js";
import { channels } from "../../src/internal.js";
import { lockManager, type WebLockManager } from "../../src/web-locks/index.js";
import { ManualRuntime } from "../unit/manual-runtime.js";

const LEASE_MS = 1_000;

let runtime: ManualRuntime;
let stopMs: number;
let holdfast: Holdfast;
let locks: WebLockManager;
let grants: GrantEvent[];

/** Stops the process when the first grant is published, just before the callback: for a whole lease by default. */
const stopsOnce = (event: unknown): void => {
  grants.push(event as GrantEvent);
  if (grants.length === 1) runtime.block(stopMs);
};

beforeEach(() => {
  grants = [];
  stopMs = LEASE_MS;
  runtime = new ManualRuntime();
  const keyspace = new Keyspace({ clock: { nowUs: () => runtime.wallMs() * 1_000 } });
  holdfast = createHoldfastOn(runtime, { store: embedded({ keyspace }), leaseMs: LEASE_MS });
  locks = lockManager(holdfast);
  channels.grant.subscribe(stopsOnce);
});
afterEach(async () => {
  channels.grant.unsubscribe(stopsOnce);
  await holdfast.close();
});

test.each(["exclusive", "shared"] as const)("a request waits again if its lease ends too early: %s", async (mode) => {
  const leases: (Lease | null)[] = [];
  const done = await locks.request("a", { mode }, (_, lease) => {
    leases.push(lease);
    lease?.assertHeld();
    return "done";
  });
  expect(done).toBe("done");
  expect(leases.map((lease) => lease?.token)).toEqual([grants[1]?.token]);
});

test("a steal whose lease ends before its callback rejects with AbortError, because another steal would end more holds", async () => {
  let isCalled = false;
  const stealing = locks.request("a", { steal: true }, () => {
    isCalled = true;
  });
  await expect(stealing).rejects.toMatchObject({ name: "AbortError" });
  expect(isCalled).toBe(false);
  expect(grants).toHaveLength(1);
});

test("a lease that ends before its callback is released if the server still counts it, because the server's clock may be behind", async () => {
  // With the allowance for clock drift, the lease is over here. On the server it has 1 ms left.
  stopMs = LEASE_MS - 1;
  await expect(locks.request("a", { steal: true }, () => {})).rejects.toMatchObject({ name: "AbortError" });
  expect((await locks.query()).held).toEqual([]);
});
