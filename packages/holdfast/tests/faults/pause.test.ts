/** A pause outlives the client that made it. */
import { expect, test } from "vitest";
import { PausedError } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";
import { ioredis, useFaultScene } from "./scene.js";

const scene = useFaultScene();
const BY = { by: "ana", label: "maintenance" };

test("a pause ends at its set time even if its client is closed", async () => {
  const gone = await scene.client(ioredis);
  const { pause } = await gone.pause(scene.name, { ...BY, untilAtMs: Date.now() + 1_500 });
  await gone.close();
  const later = await scene.client(ioredis);
  // If the machine stalls for that long, the pause may be over already.
  const early = await later.mutex(scene.name).tryAcquire();
  if (early !== null) expect(early.token / 1_000).toBeGreaterThanOrEqual((pause.untilAtMs ?? Infinity) - 1);
  await early?.release();
  await until(async () => {
    const lease = await later.mutex(scene.name).tryAcquire();
    if (lease === null) return false;
    expect(lease.token / 1_000).toBeGreaterThanOrEqual((pause.untilAtMs ?? Infinity) - 1);
    return (await lease.release()) === "released";
  }, "a grant after the pause");
});

test("a pause without an end survives its client, and another client can end it", async () => {
  const gone = await scene.client(ioredis);
  await gone.pause(scene.name, BY);
  await gone.close();
  const later = await scene.client(ioredis);
  await expect(later.mutex(scene.name).acquire()).rejects.toThrow(PausedError);
  expect(await later.resume(scene.name, { by: "ben" })).toMatchObject({ outcome: "resumed" });
  await (await later.mutex(scene.name).acquire()).release();
});

test("a holder keeps renewing under a pause, and when it is killed no waiter is granted before the resume", {
  timeout: 60_000,
}, async () => {
  const worker = scene.worker();
  await worker.call("acquire", { name: scene.name, as: "a", options: { leaseMs: 3_000 } });
  const holdfast = await scene.client(ioredis);
  await holdfast.pause(scene.name, BY);
  const before = await scene.holder();
  const waiting = holdfast.mutex(scene.name).acquire({ throughPause: true, waitMs: 60_000 });
  waiting.catch(() => {});
  await scene.queued(1);
  // Longer than a lease on the server's clock.
  const [beganAt] = (await scene.server.command("TIME")) as [string];
  await until(async () => {
    const [at] = (await scene.server.command("TIME")) as [string];
    return Number(at) - Number(beganAt) > 4;
  }, "more than a lease");
  expect(await scene.holder()).toBe(before);
  await worker.kill();
  await until(async () => (await holdfast.mutex(scene.name).inspect()).holders.length === 0, "the lease to end");
  expect(await holdfast.mutex(scene.name).tryAcquire()).toBeNull();
  expect(await holdfast.resume(scene.name, { by: "ben" })).toMatchObject({ outcome: "resumed" });
  await (await waiting).release();
});
