/** `permits` on the channel `holdfast:grant`: set for semaphores only. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast, type GrantEvent } from "../../src/index.js";

test("only a semaphore's grant event contains permits", async () => {
  const events: GrantEvent[] = [];
  const onGrant = (message: unknown): void => void events.push(message as GrantEvent);
  subscribe("holdfast:grant", onGrant);
  const holdfast = createHoldfast({ store: embedded() });
  try {
    await holdfast.semaphore("pool", { permits: 5 }).run(() => {}, { permits: 2 });
    await holdfast.readWriteLock("catalog").read.run(() => {});
    await holdfast.readWriteLock("catalog").write.run(() => {});
    await holdfast.mutex("deploy").run(() => {});
  } finally {
    unsubscribe("holdfast:grant", onGrant);
    await holdfast.close();
  }
  expect(events.map(({ kind, permits }) => [kind, permits])).toEqual([
    ["semaphore", { taken: 2, limit: 5 }],
    ["read-write-lock", undefined],
    ["read-write-lock", undefined],
    ["mutex", undefined],
  ]);
});
