/** A caller that waits in a batch has no request in flight, but otherwise waits like any other caller. */
import { beforeEach, expect, test } from "vitest";
import { NOW_US, ScriptedLock, watch } from "../unit/scripted-lock.js";

let world: ScriptedLock;
beforeEach(() => {
  world = new ScriptedLock({ takesTurns: true });
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
});

async function grant(): Promise<void> {
  await world.runtime.advance(5);
  world.store.push(`+${world.lastNumber} 1000 ${NOW_US + 5_000}`);
  await world.runtime.advance(1);
}

test("a caller in a batch keeps the process alive only while it waits, even without a deadline", async () => {
  const controller = new AbortController();
  const holding = watch(world.lock.acquire({ waitMs: Infinity }));
  const next = watch(world.lock.acquire({ waitMs: Infinity, signal: controller.signal }));
  await grant();
  await world.runtime.advance(200_000);
  expect([holding.state, next.state]).toEqual(["fulfilled", "pending"]);
  expect(world.runtime.running(true)).toBe(1);
  controller.abort();
  await world.runtime.advance(0);
  expect(next.state).toBe("rejected");
  expect(world.runtime.running(true)).toBe(0);
});

test("a caller in a batch is not granted in the turn in which its signal aborts", async () => {
  const controller = new AbortController();
  const holding = watch(world.lock.acquire({ waitMs: Infinity }));
  controller.signal.addEventListener("abort", () => void holding.value?.release());
  const next = watch(world.lock.acquire({ waitMs: Infinity, signal: controller.signal }));
  await grant();
  controller.abort("shutdown");
  await world.runtime.advance(0);
  expect(next).toMatchObject({ state: "rejected", error: "shutdown" });
  expect(world.sentOf("release")).toHaveLength(1);
  expect(world.runtime.running(true)).toBe(0);
});

test("a caller in a batch may be skipped by several batches, and leaves no timer", async () => {
  const callers = Array.from({ length: 3 }, () => watch(world.lock.acquire({ waitMs: Infinity })));
  for (const [i, caller] of callers.entries()) {
    await world.runtime.advance(5);
    const nowUs = NOW_US + world.runtime.wallMs() * 1_000;
    world.store.push(`+${world.lastNumber} ${1_000 + i * 32} ${nowUs}`);
    await world.runtime.advance(30);
    expect(caller.state).toBe("fulfilled");
    await caller.value?.release();
    await world.runtime.advance(0);
  }
  await world.runtime.advance(120_000);
  expect(world.runtime.running()).toBe(0);
});
