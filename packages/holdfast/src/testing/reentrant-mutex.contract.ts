/** The contract suite for a reentrant mutex, which every store must pass. It includes `exclusiveContract`. */
import { expect, test } from "vitest";
import {
  AcquireTimeoutError,
  LeaseLostError,
  type ReentrantLease,
  type ReentrantMutex,
  UnsupportedError,
} from "../index.js";
import { BRIEF_LEASE_MS, endOf, LONG_MS, SHORT_MS, until } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { forcedReasonContract } from "./forced-release.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function reentrantMutexContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.reentrantMutex(name));

  const scene = useScene(subject, (holdfast, name) => holdfast.reentrantMutex(name));
  forcedReasonContract(scene);
  const mine = (): ReentrantMutex => scene.lock as ReentrantMutex; // created by the factory above
  const isFree = async (): Promise<boolean> => (await scene.rival.inspect()).holders.length === 0;

  test("inside run, the mutex can be acquired again with the same token and owner", async () => {
    await mine().run(async (outer) => {
      const again = scene.holdfast.reentrantMutex(scene.name);
      await again.run(async (inner) => {
        expect([inner.token, inner.owner]).toEqual([outer.token, outer.owner]);
        expect([mine().holdCount, again.holdCount, outer.holdCount, inner.holdCount]).toEqual([2, 2, 2, 2]);
        const third = await again.tryAcquire();
        expect(third?.holdCount).toBe(3);
        await third?.release();
        expect(third?.holdCount).toBe(0);
      });
      expect(outer.holdCount).toBe(1);
      outer.assertHeld();
      expect(await scene.rival.tryAcquire()).toBeNull();
    });
    expect(mine().holdCount).toBe(0);
    expect(await isFree()).toBe(true);
  });

  test("the mutex is released with its last lease, and repeated releases count once", async () => {
    const first = await mine().acquire();
    const second = await mine().acquire({ within: first });
    const third = await mine().acquire({ within: second });
    await Promise.all([second.release(), second.release(), second.release()]);
    await first.release();
    expect(third.holdCount).toBe(1);
    expect(await scene.rival.tryAcquire()).toBeNull();
    expect(await third.release()).toBe("released");
    const next = await scene.rival.acquire({ waitMs: 0 });
    expect(next.token).toBeGreaterThan(first.token);
    await next.release();
  });

  test("a reentrant mutex and a plain mutex with the same name exclude each other in one queue", async () => {
    const plain = scene.rivalHoldfast.mutex(scene.name);
    const lease = await mine().acquire();
    expect(await plain.tryAcquire()).toBeNull();
    const waiting = plain.acquire({ waitMs: LONG_MS });
    await until(async () => (await mine().inspect()).waiterCount === 1, "the mutex to queue");
    await lease.release();
    const next = await waiting;
    expect(await mine().tryAcquire()).toBeNull();
    await next.release();
  });

  test("a second acquire outside run is a second owner, even for the current holder", async () => {
    const lease = await mine().acquire();
    expect(await endOf(() => mine().acquire({ waitMs: SHORT_MS }))).toBeInstanceOf(AcquireTimeoutError);
    await lease.release();
  });

  test("inside run, another Holdfast is a separate owner", async () => {
    await mine().run(async () => {
      expect(await scene.rival.tryAcquire()).toBeNull();
    });
  });

  test("branches of one run share its hold, which lasts until the last one releases", async () => {
    let outerToken = 0;
    const branches: Promise<ReentrantLease>[] = [];
    await mine().run(async (outer) => {
      outerToken = outer.token;
      branches.push(mine().acquire(), mine().acquire());
      await Promise.all(branches);
      expect(outer.holdCount).toBe(3);
    });
    const [left, right] = await Promise.all(branches);
    expect([left?.token, right?.token]).toEqual([outerToken, outerToken]);
    expect(await scene.rival.tryAcquire()).toBeNull();
    await left?.release();
    expect(await isFree()).toBe(false);
    expect(await right?.release()).toBe("released");
    expect(await isFree()).toBe(true);
  });

  test("a branch that acquires after the hold has ended gets a new hold", async () => {
    let go = (): void => {};
    const over = new Promise<void>((resolve) => {
      go = resolve;
    });
    let branch: Promise<ReentrantLease> | undefined;
    const outerToken = await mine().run(({ token }) => {
      branch = over.then(() => mine().acquire({ waitMs: LONG_MS }));
      return token;
    });
    const between = await scene.rival.acquire();
    go();
    await until(async () => (await mine().inspect()).waiterCount === 1, "the branch to queue");
    await between.release();
    const own = await branch;
    expect(own?.token).toBeGreaterThan(between.token);
    expect(between.token).toBeGreaterThan(outerToken);
    expect(own?.holdCount).toBe(1);
    await own?.release();
  });

  test("concurrent runs exclude each other", async () => {
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      await mine().run(() => new Promise<void>((resolve) => setImmediate(resolve)));
      expect(inside).toBe(1);
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 10 }, () => mine().run(work, { waitMs: LONG_MS })));
  });

  test("a lost hold cannot be entered again, and all its leases are lost", async () => {
    const outcome = mine().run(async (outer) => {
      const inner = await mine().acquire();
      expect(await scene.rival.forceRelease({ owner: outer.owner })).toBe(true);
      await until(() => outer.signal.aborted && inner.signal.aborted, "both signals to abort");
      expect(mine().holdCount).toBe(0);
      await expect(mine().acquire()).rejects.toMatchObject({ reason: "force-released", token: outer.token });
      await expect(mine().tryAcquire()).rejects.toThrow(LeaseLostError);
      await expect(mine().acquire({ within: inner })).rejects.toThrow(LeaseLostError);
      await expect(inner.release()).rejects.toThrow(LeaseLostError);
    });
    await expect(outcome).rejects.toThrow(LeaseLostError);
    const next = await mine().acquire({ waitMs: 0 });
    await next.release();
  });

  test("the option within accepts only a held lease of the same lock", async () => {
    const lease = await mine().acquire();
    const other = await scene.holdfast.reentrantMutex(`${scene.name}:other`).acquire();
    const foreign = await scene.rivalHoldfast.reentrantMutex(`${scene.name}:foreign`).acquire();
    const plain = await scene.holdfast.mutex(`${scene.name}:plain`).acquire();
    for (const stranger of [other, foreign, plain, {}, null, "lease"]) {
      await expect(mine().acquire({ within: stranger as ReentrantLease })).rejects.toThrow(TypeError);
      await expect(mine().tryAcquire({ within: stranger as ReentrantLease })).rejects.toThrow(TypeError);
    }
    await Promise.all([lease, other, foreign, plain].map((held) => held.release()));
    await expect(mine().acquire({ within: lease })).rejects.toMatchObject({ reason: "released" });
  });

  test("a nested acquire can lengthen the shared lease but never shortens it", async () => {
    const outer = await mine().acquire({ leaseMs: LONG_MS });
    const longer = await mine().acquire({ within: outer, leaseMs: 3 * LONG_MS });
    expect(outer.validForMs()).toBeGreaterThan(2 * LONG_MS);
    const shorter = await mine().acquire({ within: outer, leaseMs: BRIEF_LEASE_MS });
    await shorter.extend(BRIEF_LEASE_MS);
    await shorter.release();
    expect(outer.validForMs()).toBeGreaterThan(2 * LONG_MS);
    expect((await mine().inspect()).holders[0]?.leaseLeftMs).toBeGreaterThan(2 * LONG_MS);
    await longer.release();
    await outer.release();
  });

  test("a nested acquire with incompatible options is refused, and the hold continues", async () => {
    const outer = await mine().acquire({ maxHoldMs: LONG_MS });
    const same = await mine().acquire({ within: outer, renew: true, maxHoldMs: LONG_MS, label: "again", waitMs: 0 });
    await same.release();
    await expect(mine().acquire({ within: outer, renew: false })).rejects.toThrow(UnsupportedError);
    await expect(mine().acquire({ within: outer, maxHoldMs: SHORT_MS + 100 })).rejects.toThrow(UnsupportedError);
    await expect(mine().acquire({ within: outer, leaseMs: 1 })).rejects.toThrow(RangeError);
    const reason = new Error("no longer wanted");
    await expect(mine().acquire({ within: outer, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(outer.holdCount).toBe(1);
    expect(await outer.release()).toBe("released");
  });

  test("only the last lease of a hold can be exported, and the adopted lease is reentrant", async () => {
    const outer = await mine().acquire();
    const inner = await mine().acquire({ within: outer });
    expect(() => inner.export()).toThrow(UnsupportedError);
    await inner.release();
    const adopted = await scene.rivalHoldfast.adopt(outer.export());
    const again = await (scene.rival as ReentrantMutex).acquire({ within: adopted as ReentrantLease });
    expect([again.token, again.holdCount]).toEqual([outer.token, 2]);
    await adopted.release();
    expect(await again.release()).toBe("released");
  });
}
