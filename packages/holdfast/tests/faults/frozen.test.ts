/** Processes that freeze for longer than their lease and then resume. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { type Acquired, sharedClockMs } from "./programs/programs.js";
import { ioredis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 2 * BRIEF_LEASE_MS;

/** The worker's reply to `workThroughPause`. */
interface AfterPause {
  readonly heldBefore: boolean;
  readonly pausedMs: number;
  readonly validForMs: number;
  readonly error: unknown;
  readonly isAborted: boolean;
}

test("a holder frozen beyond its lease detects the loss immediately, and the resource rejects its write", async () => {
  const { server, name } = scene;
  const worker = scene.worker();
  const rival = await scene.client(ioredis);
  const resource = `resource:${name}`;
  const stale = await worker.call<Acquired>("acquire", { name, as: "it", options: { leaseMs: LEASE_MS } });
  expect(await worker.call("write", { as: "it", key: resource, value: "first" })).toBe(1);
  const next = rival.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(1);

  const working = worker.heard("working");
  const afterPause = worker.call<AfterPause>("workThroughPause", { as: "it", pauseMs: LEASE_MS });
  await working;
  worker.freeze();
  const lease = await next;
  expect(lease.token).toBeGreaterThan(stale.token);
  await server.command("HSET", resource, "token", lease.token, "value", "second");
  await sleep(LEASE_MS + BRIEF_LEASE_MS);
  worker.resume();

  const seen = await afterPause;
  expect(seen.pausedMs, "it was frozen").toBeGreaterThan(LEASE_MS);
  expect(seen.heldBefore).toBe(true);
  expect(seen.validForMs).toBe(0);
  expect(seen.error).toEqual({ name: "LeaseLostError", reason: "expired" });
  expect(seen.isAborted).toBe(true);
  expect(await worker.call("write", { as: "it", key: resource, value: "late" })).toBe(0);
  expect(await server.command("HGET", resource, "value")).toBe("second");
  await expect(worker.call("release", { as: "it" })).rejects.toMatchObject({ name: "LeaseLostError" });
  expect(await worker.call("state", { as: "it" })).toEqual({ aborts: 1, validForMs: 0 });
  expect(await scene.holder(), "the late release touched nothing").toBe(lease.owner);
  lease.assertHeld();
  expect(await lease.release()).toBe("released");
});

test("a holder frozen between two event loop turns is notified once, and its late release rejects", async () => {
  const { name } = scene;
  const worker = scene.worker();
  const rival = await scene.client(ioredis);
  const stale = await worker.call<Acquired>("acquire", { name, as: "it", options: { leaseMs: LEASE_MS } });
  worker.freeze();
  const lease = await rival.mutex(name).acquire({ waitMs: LONG_MS });
  expect(lease.token).toBeGreaterThan(stale.token);
  // The reply comes after the worker resumes. It was frozen, because the lock was granted to another client.
  const state = worker.call("state", { as: "it" });
  worker.resume();
  // The request may be read before the timer that notices the loss has run. `validForMs` is right in any case.
  expect(await state).toMatchObject({ validForMs: 0 });
  await until(
    async () => (await worker.call<{ aborts: number }>("state", { as: "it" })).aborts > 0,
    "the holder to be told",
  );
  expect(await worker.call("state", { as: "it" })).toEqual({ aborts: 1, validForMs: 0 });
  await expect(worker.call("release", { as: "it" })).rejects.toMatchObject({
    name: "LeaseLostError",
    code: "ERR_LOCK_LEASE_LOST",
  });
  expect(await worker.call("state", { as: "it" })).toEqual({ aborts: 1, validForMs: 0 });
  expect(await lease.release()).toBe("released");
});

test("a waiter frozen across its own grant delays other waiters briefly and ignores that grant afterwards", async () => {
  const { name } = scene;
  const frozen = scene.worker();
  const [holder, other] = await Promise.all([scene.client(ioredis), scene.client(ioredis)]);
  // Starting a process takes time, and the lease must not expire meanwhile.
  await frozen.call("ready");
  const lease = await holder.mutex(name).acquire({ leaseMs: LEASE_MS });
  const late = frozen.call<Acquired>("acquire", { name, as: "it", options: { waitMs: LONG_MS, leaseMs: LEASE_MS } });
  await scene.queued(1);
  const behind = other.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LONG_MS });
  await scene.queued(2);
  frozen.freeze();
  expect(await lease.release()).toBe("released");
  const frozenOwner = await scene.holder();
  const grantedAtMs = sharedClockMs();

  const second = await behind;
  expect(frozenOwner, "the frozen one was granted").not.toBe(second.owner);
  // The waiter behind knows the end of the first lease, re-checks then, and learns the end of this one.
  expect(sharedClockMs() - grantedAtMs).toBeLessThan(2 * LEASE_MS + SOON_MS);
  frozen.resume();
  await until(async () => (await holder.mutex(name).inspect()).waiterCount === 1, "the frozen one to queue again");
  const releasedAtMs = sharedClockMs();
  expect(await second.release()).toBe("released");
  const third = await late;
  expect(third.atMs).toBeGreaterThan(releasedAtMs);
  expect(third.token).toBeGreaterThan(second.token);
  expect(third.validForMs).toBeGreaterThan(0);
  expect(await frozen.call("release", { as: "it" })).toBe("released");
});

test("a process frozen without a lock leaves nothing behind, and can wait again when it resumes", async () => {
  const { name } = scene;
  const worker = scene.worker();
  const rival = await scene.client(ioredis);
  await worker.call<Acquired>("acquire", { name, as: "first", options: { leaseMs: LEASE_MS } });
  expect(await worker.call("release", { as: "first" })).toBe("released");
  worker.freeze();
  const lease = await rival.mutex(name).acquire({ leaseMs: LEASE_MS });
  await sleep(2 * LEASE_MS);
  worker.resume();
  // Its released lease is not renewed: the lock stays with its holder.
  expect(await worker.call("state", { as: "first" })).toMatchObject({ validForMs: 0 });
  expect(await scene.holder()).toBe(lease.owner);
  const late = worker.call<Acquired>("acquire", { name, as: "second", options: { waitMs: LONG_MS } });
  await scene.queued(1);
  expect(await lease.release()).toBe("released");
  expect((await late).token).toBeGreaterThan(lease.token);
  expect(await worker.call("release", { as: "second" })).toBe("released");
});
