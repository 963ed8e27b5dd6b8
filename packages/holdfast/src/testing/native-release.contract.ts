/**
 * The contract suite for releases without a script (docs/adr/149). Every store must pass it, whether or not the store
 * supports such releases.
 */
import { expect, test } from "vitest";
import { LONG_MS } from "./delays.js";
import { type LockUnderTest, type StoreUnderTest, useScene } from "./subject.js";

/** More releases than a store sends as scripts before it tries the native commands. */
const MANY = 40;
/** Long enough that a test fails if a waiter gets the lock only when the lease ends. */
const LEASE = { leaseMs: 600_000, waitMs: LONG_MS };

/** Registers the tests. Call it inside a `describe` that names the store. */
export function nativeReleaseContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));

  /** Acquires and releases other locks, so that the store can use the native commands from then on. */
  const releaseMany = async (): Promise<void> => {
    for (const holdfast of [scene.holdfast, scene.rivalHoldfast]) {
      for (let i = 0; i < MANY; i += 1) await (await holdfast.mutex(`${scene.name}:${i}`).acquire(LEASE)).release();
    }
  };

  test("each of many releases frees the lock, and tokens rise", async () => {
    const tokens: number[] = [];
    for (let i = 0; i < MANY; i += 1) {
      const lease = await scene.lock.acquire(LEASE);
      tokens.push(lease.token);
      expect(await lease.release()).toBe("released");
      expect(await scene.holders()).toEqual([]);
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(MANY);
  });

  test("clients that wait get the lock when it is released, in order", async () => {
    await releaseMany();
    const lease = await scene.lock.acquire(LEASE);
    const order: string[] = [];
    const wait = async (lock: LockUnderTest, name: string): Promise<void> => {
      const next = await lock.acquire(LEASE);
      order.push(name);
      await next.release();
    };
    const waiting = [wait(scene.rival, "first")];
    await scene.queued(1);
    waiting.push(wait((await scene.another()).mutex(scene.name), "second"));
    await scene.queued(2);
    expect(await lease.release()).toBe("released");
    await Promise.all(waiting);
    expect(order).toEqual(["first", "second"]);
    expect(await scene.holders()).toEqual([]);
  });

  test("two clients that contend for a lock exclude each other", async () => {
    await releaseMany();
    let inside = 0;
    const turns = async (lock: LockUnderTest): Promise<void> => {
      for (let i = 0; i < MANY; i += 1) {
        await lock.run(async () => {
          inside += 1;
          expect(inside).toBe(1);
          await new Promise(setImmediate);
          inside -= 1;
        }, LEASE);
      }
    };
    await Promise.all([turns(scene.lock), turns(scene.rival)]);
  });

  test("a lease that was force-released is reported as lost by its release, even if the lock is free", async () => {
    await releaseMany();
    const lease = await scene.lock.acquire(LEASE);
    expect(await scene.rival.forceRelease({ owner: lease.owner })).toBe(true);
    await expect(lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
    const next = await scene.rival.acquire(LEASE);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  test("a waiter that times out while the lock is released leaves nothing behind", async () => {
    await releaseMany();
    for (let i = 0; i < 10; i += 1) {
      const lease = await scene.lock.acquire(LEASE);
      const waiting = scene.rival.acquire({ ...LEASE, waitMs: 1 + i }).catch(() => undefined);
      await new Promise((resume) => setTimeout(resume, i));
      await lease.release();
      await (await waiting)?.release();
    }
    await (await scene.lock.acquire(LEASE)).release();
    expect(await scene.holders()).toEqual([]);
  });
}
