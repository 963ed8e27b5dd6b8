/** Force-releases of a lock that two sides have written to, and the holders that `inspect` shows for it. */

import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { javaGetSet, timestampLock } from "../../src/timestamp/index.js";
import { javaGetSetPeer } from "./peers.js";
import { expired } from "./rows.js";
import { useScene } from "./scene.js";

const scene = useScene(javaGetSet, javaGetSetPeer);

/** A value of another client that is valid for `forMs`. */
const theirs = async (forMs = 60_000): Promise<string> => String(Math.floor(await scene.nowMs()) + forMs);

/** A crashed Holdfast holder, which no longer corrects the value. */
async function deadHolder(): Promise<Lease> {
  const client = new Redis({ port: scene.server.port });
  const holdfast = createHoldfast({ redis: client });
  const lease = await timestampLock(holdfast, scene.name, javaGetSet).acquire({ renew: false });
  client.disconnect();
  return lease;
}

describe("a force-release of a lock that another client has overwritten", () => {
  test.each([
    ["a client that lost the race", 60_000],
    ["a client that holds the lock", 3_600_000],
  ])("by %s: does nothing to the Holdfast holder until the other client's value is released", async (_who, forMs) => {
    const lock = scene.lock();
    const lease = await deadHolder();
    const value = await theirs(forMs);
    await scene.redis.set(scene.key, value);
    expect((await lock.inspect()).holders).toMatchObject([
      { owner: lease.owner, token: lease.token },
      { owner: value, token: undefined },
    ]);

    expect(await lock.forceRelease({ owner: lease.owner })).toBe(false);
    expect(await lock.forceRelease({ token: lease.token })).toBe(false);
    expect(await scene.redis.get(scene.key)).toBe(value);
    expect((await lock.inspect()).holders).toHaveLength(2);

    expect(await lock.forceRelease({ owner: value })).toBe(true);
    expect((await lock.inspect()).holders).toMatchObject([{ owner: lease.owner }]);
    expect(await scene.lock({}, "second").tryAcquire(), "ours may still work").toBeNull();
    expect(await lock.forceRelease({ token: lease.token })).toBe(true);
    expect((await lock.inspect()).holders).toEqual([]);
    expect(await (await scene.lock({}, "second").acquire()).release()).toBe("released");
  });

  test("with an expired value: ends the Holdfast holder, and the lock is free", async () => {
    const lock = scene.lock();
    const lease = await deadHolder();
    await expired(scene);
    expect((await lock.inspect()).holders).toMatchObject([{ owner: lease.owner }]);
    expect(await lock.forceRelease({ owner: lease.owner })).toBe(true);
    expect((await lock.inspect()).holders).toEqual([]);
    expect(await scene.lock({}, "second").tryAcquire()).not.toBeNull();
  });

  test("with a value that is not a time, or another key type: does nothing", async () => {
    const lock = scene.lock();
    for (const spoil of [() => scene.redis.set(scene.key, "somebody"), () => scene.redis.hset(scene.key, "owner", 1)]) {
      await scene.redis.flushall();
      const lease = await deadHolder();
      await scene.redis.del(scene.key);
      await spoil();
      expect(await lock.forceRelease({ owner: lease.owner })).toBe(false);
      expect(await scene.redis.exists(scene.key)).toBe(1);
    }
  });
});

test("a force-release of a lock that another client has deleted lets other Holdfast clients in", async () => {
  const lock = scene.lock();
  const lease = await deadHolder();
  await scene.redis.del(scene.key);
  expect(await scene.lock({}, "second").tryAcquire()).toBeNull();
  expect(await lock.forceRelease({ owner: lease.owner })).toBe(true);
  expect(await scene.lock({}, "second").tryAcquire()).not.toBeNull();
});
