/** Holders and waiters that are cut off: a silent network, a blocked event loop, or a denied permission. */
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { type Acquired, sharedClockMs } from "./programs/programs.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 3 * BRIEF_LEASE_MS;

describe.each([ioredis, nodeRedis, glide])("on $name", (library) => {
  test("a holder behind a silent network has given up its lease before the next one is granted", async () => {
    const { name } = scene;
    const proxy = await scene.proxy();
    const options = { commandTimeoutMs: BRIEF_LEASE_MS };
    const [cutOff, other] = [await scene.client(library, options, proxy.port), await scene.client(ioredis)];
    const lease = await cutOff.mutex(name).acquire({ leaseMs: LEASE_MS });
    const { signal } = lease;
    let aborts = 0;
    signal.addEventListener("abort", () => {
      aborts += 1;
    });
    const waiting = other.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    proxy.stall();
    const next = await waiting;
    expect(lease.validForMs()).toBe(0);
    expect(aborts).toBe(1);
    expect(signal.reason).toMatchObject({ reason: "expired" });
    expect(next.token).toBeGreaterThan(lease.token);
    // The delayed renewals and the release arrive, and change nothing.
    const releasing = lease.release();
    proxy.resume();
    await expect(releasing).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
    expect(await scene.holder()).toBe(next.owner);
    expect(aborts).toBe(1);
    expect(await next.release()).toBe("released");
  });

  test("a waiter behind a silent network fails in bounded time and leaves the queue", async () => {
    const { name, server, keys } = scene;
    const proxy = await scene.proxy();
    const options = { commandTimeoutMs: BRIEF_LEASE_MS };
    const [cutOff, holder] = [await scene.client(library, options, proxy.port), await scene.client(ioredis)];
    const lease = await holder.mutex(name).acquire({ leaseMs: LEASE_MS });
    const waiting = cutOff.mutex(name).acquire({ waitMs: 2 * LEASE_MS, leaseMs: LEASE_MS });
    const refused = expect(waiting).rejects.toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
    await scene.queued(1);
    // The waiter re-checks at the end of the lease it knows of. The extension keeps the lock held: this test is about
    // the waiter.
    await lease.extend(LONG_MS);
    proxy.stall();
    await refused;
    proxy.resume();
    await until(async () => (await server.command("EXISTS", keys.queue)) === 0, "the queue to be empty");
    expect(await lease.release()).toBe("released");
    const again = await cutOff.mutex(name).acquire({ waitMs: SOON_MS });
    expect(await again.release()).toBe("released");
  });
});

test("a holder whose event loop was blocked beyond its lease detects the loss immediately", async () => {
  const { name } = scene;
  const worker = scene.worker();
  const holdfast = await scene.client(ioredis);
  // Starting a process takes time, and the lease must not expire meanwhile.
  await worker.call("ready");
  const lease = await holdfast.mutex(name).acquire({ leaseMs: LEASE_MS });
  const { signal } = lease;
  const rival = worker.call<Acquired>("acquire", { name, as: "it", options: { waitMs: LONG_MS, leaseMs: LONG_MS } });
  await scene.queued(1);
  lease.assertHeld();
  const unblockedAtMs = sharedClockMs() + 3 * LEASE_MS;
  while (sharedClockMs() < unblockedAtMs);
  expect(lease.validForMs()).toBe(0);
  expect(signal.aborted).toBe(true);
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: "expired" }));
  const next = await rival;
  expect(next.atMs).toBeLessThan(unblockedAtMs);
  expect(next.token).toBeGreaterThan(lease.token);
  await expect(lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
  expect(await scene.holder()).toBe(next.owner);
});

test("a client that may not subscribe polls instead of queueing, and gets the lock", async () => {
  const { name, server, keys } = scene;
  await server.command("ACL", "SETUSER", "deaf", "on", "nopass", "~*", "&*", "+@all", "-subscribe");
  const holder = await scene.client(ioredis);
  const deaf = await scene.client({
    name: "deaf",
    async connect(port) {
      const redis = new Redis({ port, username: "deaf", password: "any" });
      redis.on("error", () => {});
      return { options: { redis }, disconnect: () => redis.disconnect() };
    },
  });
  const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });
  const waiting = deaf.mutex(name).acquire({ waitMs: LONG_MS });
  await until(async () => String(await server.command("ACL", "LOG")).includes("subscribe"), "the refusal");
  expect(await deaf.mutex(name).tryAcquire()).toBeNull();
  expect(await server.command("EXISTS", keys.queue)).toBe(0);
  await lease.release();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(lease.token);
  expect(await next.release()).toBe("released");
});
