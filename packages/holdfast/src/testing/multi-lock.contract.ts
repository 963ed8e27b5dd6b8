/** The contract suite for a multi-lock, which every store must pass. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  ClosedError,
  type Holdfast,
  LeaseLostError,
  type MultiLease,
  type MultiLock,
} from "../index.js";
import { BRIEF_LEASE_MS, endOf, LONG_MS, SHORT_MS, until, withLeaseInTime } from "./delays.js";
import { exclusionContract } from "./exclusion.contract.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function multiLockContract(subject: StoreUnderTest): void {
  describe("with one member", () => {
    exclusiveContract(subject, (holdfast, name) => holdfast.multiLock([name]), {
      forcedRelease: false,
      handOver: false,
    });
  });
  describe("with two members", () => {
    exclusionContract(useScene(subject, (holdfast, name) => holdfast.multiLock(pairOf(name))));
  });
  describe("with several members", () => severalContract(subject));
}

/** Returns two names. The given one comes first, both in this list and in the order of acquisition. */
function pairOf(name: string): readonly [string, string] {
  return [name, `~${createHash("sha1").update(name).digest("hex")}`];
}

function severalContract(subject: StoreUnderTest): void {
  const three = (holdfast: Holdfast, name: string): MultiLock =>
    holdfast.multiLock([`${name}:c`, `${name}:a`, `${name}:b`]);
  const scene = useScene(subject, three);
  const acquire = async (options = {}): Promise<MultiLease> => (await scene.lock.acquire(options)) as MultiLease;
  const rivalMutex = (suffix: string): ReturnType<Holdfast["mutex"]> =>
    scene.rivalHoldfast.mutex(`${scene.name}:${suffix}`);
  const areFree = async (): Promise<boolean> => (await scene.lock.inspect()).holders.length === 0;

  test("each member has its own lease, in the given order", async () => {
    const lease = await acquire();
    expect(lease.leases.map(({ name }) => name)).toEqual(["c", "a", "b"].map((suffix) => `${scene.name}:${suffix}`));
    expect(new Set(lease.leases.map(({ owner }) => owner)).size).toBe(3);
    for (const { name, token, owner } of lease.leases) {
      expect((await scene.rivalHoldfast.mutex(name).inspect()).holders[0]).toMatchObject({ token, owner });
    }
    expect(lease.token).toBe(Math.max(...lease.leases.map(({ token }) => token)));
    // Read the members first, because time passes between two reads.
    const leastMs = Math.min(...lease.leases.map((one) => one.validForMs())) + 1;
    expect(lease.validForMs()).toBeLessThanOrEqual(leastMs);
    await lease.release();
    expect(await areFree()).toBe(true);
  });

  test("no member is held if one is unavailable", async () => {
    const blocker = await rivalMutex("b").acquire();
    expect(await scene.lock.tryAcquire()).toBeNull();
    const error = await endOf(() => scene.lock.acquire({ waitMs: SHORT_MS }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ lockName: `${scene.name}:b`, waitMs: SHORT_MS, token: blocker.token });
    expect(error).toMatchObject({ holder: { owner: blocker.owner } });
    await expect(scene.lock.acquire({ waitMs: 0 })).rejects.toMatchObject({ lockName: `${scene.name}:b` });
    for (const suffix of ["a", "c"]) {
      const free = await rivalMutex(suffix).acquire({ waitMs: 0 });
      await free.release();
    }
    await blocker.release();
  });

  test("an abort while some members are held leaves nothing behind", async () => {
    const blocker = await rivalMutex("b").acquire();
    const controller = new AbortController();
    const reason = new Error("no longer wanted");
    const waiting = scene.lock.acquire({ waitMs: Infinity, signal: controller.signal });
    await until(async () => (await rivalMutex("b").inspect()).waiterCount === 1, "the wait for b");
    expect(await rivalMutex("a").tryAcquire()).toBeNull();
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await until(async () => (await rivalMutex("a").inspect()).holders.length === 0, "a to be released");
    await blocker.release();
    await until(areFree, "all to be free");
  });

  test("a member that is lost while the lock waits for another is acquired again", async () => {
    const blocker = await rivalMutex("b").acquire();
    const waiting = scene.lock.acquire({ waitMs: LONG_MS }) as Promise<MultiLease>;
    await until(async () => (await rivalMutex("b").inspect()).waiterCount === 1, "the wait for b");
    const ownerOfA = async (): Promise<string> => (await rivalMutex("a").inspect()).holders[0]?.owner ?? "";
    const before = await ownerOfA();
    expect(await rivalMutex("a").forceRelease({ owner: before })).toBe(true);
    await until(async () => !["", before].includes(await ownerOfA()), "a to be acquired again");
    await blocker.release();
    const lease = await waiting;
    for (const one of lease.leases) one.assertHeld();
    await lease.release();
  });

  test("losing one member loses the whole lock and releases the others", async () => {
    const lease = await acquire({ leaseMs: 4 * LONG_MS });
    let aborts = 0;
    lease.signal.addEventListener("abort", () => {
      aborts += 1;
    });
    const owner = lease.leases[1]?.owner ?? "";
    expect(await rivalMutex("a").forceRelease({ owner })).toBe(true);
    await until(() => lease.signal.aborted, "the signal to abort");
    expect(lease.signal.reason).toMatchObject({ reason: "force-released", lockName: lease.name, token: lease.token });
    expect(lease.validForMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    for (const suffix of ["a", "b", "c"]) await (await rivalMutex(suffix).acquire({ waitMs: LONG_MS })).release();
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(aborts).toBe(1);
  });

  test("a release frees all members, even if one was lost unnoticed", async () => {
    const lease = await acquire({ leaseMs: LONG_MS });
    await scene.server.delete(...(await scene.server.keysWith(`${scene.name}:c`)));
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(await areFree()).toBe(true);
  });

  test("extend extends every member, and if one fails, the whole lock is lost", async () => {
    const lease = await acquire({ leaseMs: LONG_MS });
    await lease.extend(2 * LONG_MS);
    for (const one of lease.leases) expect(one.validForMs()).toBeGreaterThan(LONG_MS);
    await scene.server.delete(...(await scene.server.keysWith(`${scene.name}:b`)));
    await expect(lease.extend(2 * LONG_MS)).rejects.toThrow(LeaseLostError);
    expect(lease.signal.aborted).toBe(true);
    await until(areFree, "the others to be released");
  });

  test("close ends a wait, releases its members and aborts the signals of held leases", async () => {
    const holdfast = await scene.another();
    const held = await holdfast.multiLock([`${scene.name}:x`, `${scene.name}:y`]).acquire();
    const { signal } = held;
    const blocker = await rivalMutex("b").acquire();
    const waiting = three(holdfast, scene.name).acquire({ waitMs: Infinity });
    waiting.catch(() => {});
    await until(async () => (await rivalMutex("b").inspect()).waiterCount === 1, "the wait for b");
    await holdfast.close();
    await expect(waiting).rejects.toThrow(ClosedError);
    expect(signal.reason).toMatchObject({ reason: "closed" });
    expect(await held.release()).toBe("released");
    for (const suffix of ["a", "c", "x", "y"]) await (await rivalMutex(suffix).acquire({ waitMs: LONG_MS })).release();
    await blocker.release();
    await until(areFree, "all to be free");
  });

  test("all member leases are renewed, and all end without renewal", async () => {
    await withLeaseInTime(async (leaseMs) => {
      await using kept = await acquire({ leaseMs, waitMs: LONG_MS });
      const waiting = scene.rival.run(() => {}, { waitMs: 2 * leaseMs });
      await expect(waiting).rejects.toThrow(AcquireTimeoutError);
      kept.assertHeld();
    }, 2 * BRIEF_LEASE_MS);
    const lease = await acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const next = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(lease.signal.aborted).toBe(true);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  test("callers that list the same locks in opposite order do not deadlock", async () => {
    const names = ["a", "b", "c"].map((suffix) => `${scene.name}:${suffix}`);
    const up = scene.holdfast.multiLock(names);
    const down = scene.rivalHoldfast.multiLock(names.toReversed());
    let inside = 0;
    const work = (): void => {
      expect(inside).toBe(0);
    };
    const rounds = async (lock: MultiLock): Promise<void> => {
      for (let i = 0; i < 25; i += 1) {
        await lock.run(
          async () => {
            work();
            inside += 1;
            await Promise.resolve();
            inside -= 1;
          },
          { waitMs: LONG_MS },
        );
      }
    };
    await Promise.all([rounds(up), rounds(down), rounds(up), rounds(down)]);
    expect(await areFree()).toBe(true);
  });

  test("a multi-lock that shares one member with another waits for that member", async () => {
    const other = scene.rivalHoldfast.multiLock([`${scene.name}:b`, `${scene.name}:x`]);
    const lease = await acquire();
    const waiting = other.acquire({ waitMs: LONG_MS });
    await until(async () => (await rivalMutex("b").inspect()).waiterCount === 1, "the wait for b");
    await lease.release();
    const next = await waiting;
    expect(await scene.lock.tryAcquire()).toBeNull();
    await next.release();
  });

  test("a reentrant member that the caller already holds is entered again", async () => {
    const reentrant = scene.holdfast.reentrantMutex(`${scene.name}:a`);
    await reentrant.run(async (outer) => {
      const both = await scene.holdfast.multiLock([`${scene.name}:z`, reentrant]).acquire({ waitMs: 0 });
      expect(both.leases[1]?.token).toBe(outer.token);
      expect(reentrant.holdCount).toBe(2);
      await both.release();
      expect(reentrant.holdCount).toBe(1);
    });
  });

  test("a mutex, a read lock and a permit can be combined and are held all or none", async () => {
    const name = `${scene.name}:catalogue`;
    const mixed = (holdfast: Holdfast, mutex: string): MultiLock =>
      holdfast.multiLock([
        mutex,
        holdfast.readWriteLock(name).read,
        holdfast.semaphore(`${name}:slots`, { permits: 2 }),
      ]);
    const lease = await mixed(scene.holdfast, `${name}:a`).acquire();
    const beside = await mixed(scene.rivalHoldfast, `${name}:b`).acquire({ waitMs: LONG_MS });
    const third = mixed(scene.rivalHoldfast, `${name}:c`);
    expect(await third.tryAcquire()).toBeNull();
    expect(await endOf(() => third.acquire({ waitMs: SHORT_MS }))).toMatchObject({ lockName: `${name}:slots` });
    expect(await scene.rivalHoldfast.mutex(`${name}:c`).tryAcquire()).not.toBeNull();
    const { read, write } = scene.rivalHoldfast.readWriteLock(name);
    expect(await write.tryAcquire()).toBeNull();
    expect(() => scene.rivalHoldfast.multiLock([read, write])).toThrow(/are the same lock/);
    await Promise.all([lease.release(), beside.release()]);
    const writer = await write.acquire({ waitMs: LONG_MS });
    expect(await mixed(scene.holdfast, `${name}:a`).tryAcquire()).toBeNull();
    await writer.release();
  });

  test("multi-locks that combine a mutex with a read or write lock do not deadlock", async () => {
    const shelf = `${scene.name}:shelf`;
    const rounds = async (holdfast: Holdfast, side: "read" | "write"): Promise<void> => {
      const lock = holdfast.readWriteLock(shelf)[side];
      const both = side === "read" ? [lock, `${shelf}:door`] : [`${shelf}:door`, lock];
      for (let i = 0; i < 15; i += 1) await holdfast.multiLock(both).run(() => {}, { waitMs: LONG_MS });
    };
    await Promise.all([
      rounds(scene.holdfast, "read"),
      rounds(scene.rivalHoldfast, "write"),
      rounds(scene.holdfast, "write"),
      rounds(scene.rivalHoldfast, "read"),
    ]);
  });

  test("invalid, foreign and duplicate members are rejected", () => {
    const { holdfast, rivalHoldfast, name } = scene;
    expect(() => holdfast.multiLock([name, "other", name])).toThrow(
      /members\[0\], ".*", and members\[2\], ".*", are the same lock/,
    );
    expect(() => holdfast.multiLock([name, holdfast.reentrantMutex(name)])).toThrow(TypeError);
    expect(() => holdfast.multiLock([holdfast.mutex("a", { key: "k" }), holdfast.mutex("b", { key: "k" })])).toThrow(
      /"a".*"b".*are the same lock/,
    );
    expect(() => holdfast.multiLock([name, rivalHoldfast.mutex("other")])).toThrow(/the same Holdfast/);
    expect(() => holdfast.multiLock([])).toThrow(RangeError);
    expect(() => holdfast.multiLock(Array.from({ length: 65 }, (_, i) => `${name}${i}`))).toThrow(RangeError);
    expect(() => holdfast.multiLock(Array.from({ length: 64 }, (_, i) => `${name}${i}`))).not.toThrow();
    for (const wrong of [undefined, null, "name", [7], [null], [{}]]) {
      expect(() => holdfast.multiLock(wrong as unknown as string[])).toThrow(TypeError);
    }
    expect(() => holdfast.multiLock([""])).toThrow(RangeError);
  });
}
