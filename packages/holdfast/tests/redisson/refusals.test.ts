/** What is not allowed, not seen or not known is said as that: never as a free lock, or as a lock of another type. */
import { afterEach, describe, expect, test } from "vitest";
import { createHoldfast, type Holdfast, LeaseLostError, StoreError, UnsupportedError } from "../../src/index.js";
import { type Redisson, redisson } from "../../src/interop/redisson/index.js";
import { useScene } from "./scene.js";

const scene = useScene();
const LONG_MS = 60_000;
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A service of ours by a client that was made with these options. */
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

/** A service whose Redis user may do all but these. */
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

describe("a user who may not look at a lock is told what is missing", () => {
  test.each(["lock", "fencedLock", "spinLock", "fairLock"] as const)("of a %s", async (kind) => {
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
      expect(String(failure)).not.toContain("is not that of");
    }
    expect(await lease.release()).toBe("released");
  });

  test.each(["read", "write"] as const)("of the %s side of a read-write lock", async (side) => {
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

  test("nor does a wait that is given up count as one that left nothing", async () => {
    const [name, locks] = [scene.name(), await without("-hexists")];
    // It may be granted, and not see it: what leaves must not say that there was nothing.
    await scene.redis.hset(name, "somebody:1", 1);
    await expect(locks.lock(name).acquire({ waitMs: 50 })).rejects.toMatchObject({ missingPermission: "+hexists" });
  });
});

test("a client that puts a prefix before keys is never told that a lock is free, or that nobody holds it", async () => {
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
      expect(String(failure)).toMatch(/use the nameMapper of redisson instead of a keyPrefix/);
    }
  }
  await expect(locks.countDownLatch(`${name}:c`).getCount()).rejects.toBeInstanceOf(UnsupportedError);
  for (const lease of Object.values(held)) expect(await lease.release()).toBe("released");
});

describe("a forced release", () => {
  test("of a fenced lock wants the holder's owner: a token alone may be older than an RLock that holds now", async () => {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const fenced = node.locks.fencedLock(name);
    const { token } = await fenced.run((lease) => lease);
    const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
    // The counter still shows the token of a lease that is long over.
    expect(await scene.redis.get(`redisson_lock_token:{${name}}`)).toBe(String(token));
    await expect(fenced.forceRelease({ token })).rejects.toThrow(/does not say who holds the lock now: pass its owner/);
    expect((await fenced.inspect()).holders).toMatchObject([{ token: undefined }]);
    expect(await theirs?.unlock(), "it was left alone").toBe(true);
  });

  test("of a fenced lock ends the owner that is named, and with a token only while the counter shows it", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const fenced = node.locks.fencedLock(name);
    const { owner, token } = await fenced.acquire();
    expect(await fenced.forceRelease({ owner, token: token + 1 })).toBe(false);
    expect(await fenced.forceRelease({ owner: "mode", token })).toBe(false);
    expect(await fenced.forceRelease({ owner, token })).toBe(true);
    expect(await scene.redis.exists(name)).toBe(0);
  });

  test("says yes once, and its holder finds out", async () => {
    const [name, node] = [scene.name(), scene.node()];
    const lease = await node.locks.fencedLock(name).acquire();
    const { owner, token } = lease;
    expect(await node.locks.fencedLock(name).forceRelease({ owner, token })).toBe(true);
    expect(await node.locks.fencedLock(name).forceRelease({ owner, token })).toBe(false);
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
  });
});
