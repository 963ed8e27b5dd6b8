/** Group A: acquire and its results. README.md lists the rows that are tested elsewhere. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { AcquireTimeoutError, createHoldfast, StoreError } from "../../src/index.js";
import { LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { usePeerScene } from "./peer-scene.js";

const scene = usePeerScene();

test("A1: `waitMs: 0` at the call does not wait, whatever the default is", async () => {
  const patient = createHoldfast({ redis: scene.redis, waitMs: 3_600_000 });
  const lease = await scene.rival.acquire();
  await expect(patient.mutex(scene.name).acquire({ waitMs: 0 })).rejects.toThrow(AcquireTimeoutError);
  expect((await scene.lock.inspect()).waiterCount).toBe(0);
  await lease.release();
  await patient.close();
});

test("A4: an acquire of a free lock, a refused tryAcquire and a release each take one script call", async () => {
  const counted = await scene.count();
  const lease = await scene.lock.acquire();
  expect((await counted()).scripts).toBe(1);
  expect(await scene.rival.tryAcquire()).toBeNull();
  expect((await counted()).scripts).toBe(2);
  await lease.release();
  expect((await counted()).scripts).toBe(3);
});

test("A14: a server error during a wait rejects the wait once, and the lock works again afterwards", async () => {
  const lease = await scene.lock.acquire({ leaseMs: SOON_MS, renew: false });
  const waiting = scene.rival.acquire({ waitMs: Infinity });
  await until(async () => (await scene.lock.inspect()).waiterCount === 1, "the waiter to queue");
  await scene.redis.set(scene.key(":queue"), "not a queue");
  // A second, unhandled rejection would fail the whole run.
  await expect(waiting).rejects.toThrow(StoreError);
  await scene.redis.del(scene.key(":queue"));
  const next = await scene.rival.acquire({ waitMs: LONG_MS });
  expect(next.token).toBeGreaterThan(lease.token);
  await next.release();
});

test("A17: inspect rejects when the server is down, and never reports the lock as free", async () => {
  const server = await startRedis();
  const redis = new Redis({ port: server.port });
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis, commandTimeoutMs: 200 });
  const lease = await holdfast.mutex("a").acquire();
  expect((await holdfast.mutex("a").inspect()).holders[0]?.owner).toBe(lease.owner);
  await server.kill();
  await expect(holdfast.mutex("a").inspect()).rejects.toThrow(StoreError);
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});
