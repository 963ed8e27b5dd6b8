/** What a forced release says about a lock that two sides have written to, and whose names `inspect` shows for it. */
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { createHoldfast, type Lease } from "../../../src/index.js";
import { javaGetSet, timestampLock } from "../../../src/interop/timestamp/index.js";
import { javaGetSetPeer } from "./peers.js";
import { expired } from "./rows.js";
import { useScene } from "./scene.js";

const scene = useScene(javaGetSet, javaGetSetPeer);

/** A value of theirs that is good for so long. */
const theirs = async (forMs = 60_000): Promise<string> => String(Math.floor(await scene.nowMs()) + forMs);

/** A holder of ours that has died: it puts nothing right any more. */
async function deadHolder(): Promise<Lease> {
  const client = new Redis({ port: scene.server.port });
  const holdfast = createHoldfast({ redis: client });
  const lease = await timestampLock(holdfast, scene.name, javaGetSet).acquire({ renew: false });
  client.disconnect();
  return lease;
}

describe("where the value of another client has taken the place of ours", () => {
  test.each([
    ["a client that came too late", 60_000],
    ["one that has the lock", 3_600_000],
  ])("of %s: nothing is done and nothing claimed; each is ended by its own name", async (_who, forMs) => {
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

  test("and whose time is over: ours is ended, and the lock is free", async () => {
    const lock = scene.lock();
    const lease = await deadHolder();
    await expired(scene);
    expect((await lock.inspect()).holders).toMatchObject([{ owner: lease.owner }]);
    expect(await lock.forceRelease({ owner: lease.owner })).toBe(true);
    expect((await lock.inspect()).holders).toEqual([]);
    expect(await scene.lock({}, "second").tryAcquire()).not.toBeNull();
  });

  test("and that is no time, or of another type: nothing is done", async () => {
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

test("a lock of ours that another client has deleted is ended for good, so that others of ours go in", async () => {
  const lock = scene.lock();
  const lease = await deadHolder();
  await scene.redis.del(scene.key);
  expect(await scene.lock({}, "second").tryAcquire()).toBeNull();
  expect(await lock.forceRelease({ owner: lease.owner })).toBe(true);
  expect(await scene.lock({}, "second").tryAcquire()).not.toBeNull();
});
