/** Group D: waiting. README.md lists the rows that are tested elsewhere. */
import { setMaxListeners } from "node:events";
import { expect, test } from "vitest";
import { LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

const queued = (count: number): Promise<void> =>
  until(async () => (await scene.lock.inspect()).waiterCount === count, `${count} in the queue`);

test("D2: a waiter that leaves does not stop notifications for others in its process", async () => {
  const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
  const controller = new AbortController();
  const leaving = scene.rival
    .acquire({ waitMs: LONG_MS, signal: controller.signal, fairness: "strict" })
    .catch((reason: unknown) => reason);
  await queued(1);
  const staying = scene.rival.acquire({ waitMs: LONG_MS, fairness: "strict" });
  await queued(2);
  controller.abort("gone");
  expect(await leaving).toBe("gone");
  await queued(1);
  const startedAtMs = performance.now();
  await lease.release();
  await (await staying).release();
  // A message woke the waiter, not the re-check after 5 s.
  expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);
});

test("D9: tryAcquire, extend and release cost the same with one waiter or hundreds", async () => {
  const costs: number[] = [];
  for (const waiters of [1, 300]) {
    const lock = scene.holdfast.mutex(`${scene.name}:${waiters}`);
    const rival = scene.rivalHoldfast.mutex(`${scene.name}:${waiters}`);
    const lease = await lock.acquire({ leaseMs: LONG_MS });
    const controller = new AbortController();
    setMaxListeners(waiters, controller.signal);
    const waiting = Array.from({ length: waiters }, () =>
      rival.acquire({ waitMs: LONG_MS, signal: controller.signal, fairness: "strict" }).catch(() => null),
    );
    await until(async () => (await lock.inspect()).waiterCount === waiters, `${waiters} in the queue`);
    const counted = await scene.count();
    expect(await lock.tryAcquire()).toBeNull();
    await lease.extend(LONG_MS);
    await lease.release();
    // Wait until the next holder has confirmed its grant.
    await Promise.race(waiting);
    costs.push((await counted()).all);
    controller.abort();
    for (const granted of await Promise.all(waiting)) await granted?.release();
  }
  expect(costs[1]).toBe(costs[0]);
});
