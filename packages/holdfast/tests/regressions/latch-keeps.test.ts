/** A latch must not open because its count expired while callers wait for it. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast, createHoldfastOn, type Holdfast } from "../../src/holdfast.js";
import { ManualRuntime } from "../unit/manual-runtime.js";

/** Advances the time in steps short enough for every reply to arrive on time. */
async function pass(runtime: ManualRuntime, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    await runtime.advance(100);
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  }
}

function scene(): { runtime: ManualRuntime; holdfast: Holdfast; other: Holdfast } {
  const runtime = new ManualRuntime();
  const keyspace = new Keyspace({ clock: { nowUs: () => Math.floor(runtime.wallMs() * 1_000) } });
  const holdfast = createHoldfastOn(runtime, { store: embedded({ keyspace }) });
  const other = createHoldfast({ store: embedded({ keyspace }) });
  return { runtime, holdfast, other };
}

test("a latch with a keepMs of one second stays closed while a caller waits", async () => {
  const { runtime, holdfast, other } = scene();
  const latch = holdfast.countDownLatch("l", { keepMs: 1_000 });
  await latch.trySetCount(1);
  let isOpen = false;
  const waiting = latch.await({ waitMs: Infinity }).then(() => {
    isOpen = true;
  });

  await pass(runtime, 30_000);
  expect(isOpen).toBe(false);
  await latch.countDown();
  await pass(runtime, 100);
  await waiting;
  await Promise.all([holdfast.close(), other.close()]);
});

test("a client with a short keepMs does not shorten a latch that another client keeps for a day", async () => {
  const { runtime, holdfast, other } = scene();
  const latch = holdfast.countDownLatch("l");
  await latch.trySetCount(2);
  let isOpen = false;
  const waiting = latch.await({ waitMs: Infinity }).then(() => {
    isOpen = true;
  });
  await pass(runtime, 100);

  await other.countDownLatch("l", { keepMs: 1_000 }).countDown();
  await pass(runtime, 30_000);
  expect(isOpen).toBe(false);
  await latch.countDown();
  await pass(runtime, 100);
  await waiting;
  await Promise.all([holdfast.close(), other.close()]);
});
