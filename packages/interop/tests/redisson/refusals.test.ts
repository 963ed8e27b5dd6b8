/** A missing permission or an unknown state is an error, never reported as a free lock or a lock of another type. */

import { createHoldfast, type Holdfast, LeaseLostError, StoreError, UnsupportedError } from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { type Redisson, redisson } from "../../src/redisson/index.js";
import { useScene } from "./scene.js";

const scene = useScene();
const LONG_MS = 60_000;
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A Holdfast service whose client has these options. */
function service(options: object): { readonly locks: Redisson; readonly holdfast: Holdfast } {
  const client = scene.node().client.duplicate({ enableReadyCheck: false, ...options });
  client.on("error", () => {});
  const holdfast = createHoldfast({ redis: client });
  closers.push(async () => {
    await holdfast.close();
    client.disconnect();
  });
  return { holdfast, locks: redisson(holdfast) };
}

/** A service whose Redis user has every permission except these. */
async function without(...rules: string[]): Promise<Redisson> {
  const username = `user-${scene.name()}`;
  await scene.redis.call("ACL", "SETUSER", username, "on", ">secret", "~*", "&*", "+@all", ...rules);
  return service({ username, password: "secret" }).locks;
}

const failureOf = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    (value) => value,
    (error: unknown) => error,
  );

describe("a user without permission to read a lock gets an error that names the permission", () => {
  test.each(["lock", "fencedLock", "spinLock", "fairLock"] as const)("for a %s", async (kind) => {
    const [name, node, locks] = [scene.name(), scene.node(), await without("-hexists")];
    const lease = await node.locks[kind](name).acquire();
    const lock = locks[kind](name);
    for (const ask of [
      () => lock.tryAcquire(),
      () => lock.acquire(),
      () => lock.inspect(),
      () => lock.forceRelease({ owner: lease.owner }),
    ]) {
      const failure = await failureOf(ask());
      expect(failure).toBeInstanceOf(StoreError);
      expect(failure).toMatchObject({ missingPermission: "+hexists", transient: false });
      expect(String(failure)).not.toContain("is not a redisson");
    }
    expect(await lease.release()).toBe("released");
  });

  test.each(["read", "write"] as const)("for the %s side of a read-write lock", async (side) => {
    const [name, node, locks] = [scene.name(), scene.node(), await without("-hget")];
    const lease = await node.locks.readWriteLock(name)[side].acquire();
    const lock = locks.readWriteLock(name)[side];
    for (const ask of [
      () => lock.tryAcquire(),
      () => lock.inspect(),
      () => lock.forceRelease({ owner: lease.owner }),
    ]) {
      const failure = await failureOf(ask());
      expect(failure).toBeInstanceOf(StoreError);
      expect(failure).toMatchObject({ missingPermission: "+hget", transient: false });
    }
    expect(await scene.redis.hget(name, lease.owner)).toBe("1");
  });

  test("for a wait that times out", async () => {
    const [name, locks] = [scene.name(), await without("-hexists")];
    // The wait may be granted without seeing it, so leaving must not report that nothing was held.
    await scene.redis.hset(name, "somebody:1", 1);
    await expect(locks.lock(name).acquire({ waitMs: 50 })).rejects.toMatchObject({ missingPermission: "+hexists" });
  });
});

test("a client with a keyPrefix gets an error, never a report that a held lock is free", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const { locks } = service({ keyPrefix: "svc:" });
  const semaphore = node.locks.semaphore(`${name}:s`);
  const permits = node.locks.permitExpirableSemaphore(`${name}:p`);
  await semaphore.trySetPermits(1);
  await permits.trySetPermits(1);
  const latch = node.locks.countDownLatch(`${name}:c`);
  await latch.trySetCount(1);
  const held = {
    lock: await node.locks.lock(`${name}:l`).acquire({ leaseMs: LONG_MS }),
    fair: await node.locks.fairLock(`${name}:f`).acquire({ leaseMs: LONG_MS }),
    read: await node.locks.readWriteLock(`${name}:r`).read.acquire(),
    write: await node.locks.readWriteLock(`${name}:w`).write.acquire({ leaseMs: LONG_MS }),
    permit: await semaphore.acquire({ leaseMs: LONG_MS }),
    expirable: await permits.acquire({ leaseMs: LONG_MS }),
  };
  const { read } = locks.readWriteLock(`${name}:r`);
  const { write } = locks.readWriteLock(`${name}:w`);
  for (const [lock, { owner }] of [
    [locks.lock(`${name}:l`), held.lock],
    [locks.fairLock(`${name}:f`), held.fair],
    [read, held.read],
    [write, held.write],
    [locks.semaphore(`${name}:s`), held.permit],
    [locks.permitExpirableSemaphore(`${name}:p`), held.expirable],
  ] as const) {
    for (const ask of [() => lock.inspect(), () => lock.forceRelease({ owner })]) {
      const failure = await failureOf(ask());
      expect(failure, lock.constructor.name).toBeInstanceOf(UnsupportedError);
      expect(String(failure)).toMatch(/adds its keyPrefix to the key .* Use the nameMapper of redisson instead/);
    }
  }
  await expect(locks.countDownLatch(`${name}:c`).getCount()).rejects.toBeInstanceOf(UnsupportedError);
  for (const lease of Object.values(held)) expect(await lease.release()).toBe("released");
});

describe("a force-release", () => {
  test("of a fenced lock requires the owner because the token may predate the current RLock holder", async () => {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const fenced = node.locks.fencedLock(name);
    const { token } = await fenced.run((lease) => lease);
    const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
    // The counter still shows the token of a lease that has ended.
    expect(await scene.redis.get(`redisson_lock_token:{${name}}`)).toBe(String(token));
    await expect(fenced.forceRelease({ token })).rejects.toThrow(
      /does not identify the holder of a redisson\.fenced-lock\. Pass \{ owner, token \}/,
    );
    expect((await fenced.inspect()).holders).toMatchObject([{ token: undefined }]);
    expect(await theirs?.unlock(), "it was left alone").toBe(true);
  });

  test("of a fenced lock must match the owner and, if given, the current token", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const fenced = node.locks.fencedLock(name);
    const { owner, token } = await fenced.acquire();
    expect(await fenced.forceRelease({ owner, token: token + 1 })).toBe(false);
    expect(await fenced.forceRelease({ owner: "mode", token })).toBe(false);
    expect(await fenced.forceRelease({ owner, token })).toBe(true);
    expect(await scene.redis.exists(name)).toBe(0);
  });

  test("returns true once, and the holder loses its lease", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const lease = await node.locks.fencedLock(name).acquire();
    const { owner, token } = lease;
    expect(await node.locks.fencedLock(name).forceRelease({ owner, token })).toBe(true);
    expect(await node.locks.fencedLock(name).forceRelease({ owner, token })).toBe(false);
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  });
});
