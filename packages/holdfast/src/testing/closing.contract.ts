/** The contract suite for `close` and `held`, which every store must pass. */
import { expect, test } from "vitest";
import { ClosedError, type Holdfast, type Lease, LeaseLostError } from "../index.js";
import { BRIEF_LEASE_MS, deferred, LONG_MS, sleep, until } from "./delays.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function closingContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));

  /** Starts work that runs until the signal of its lease aborts and `settled` resolves. */
  const working = async (
    holdfast: Holdfast,
    name: string,
    settled: Promise<unknown> = Promise.resolve(),
  ): Promise<{ readonly run: Promise<string>; readonly lease: Lease }> => {
    const begun = deferred<Lease>();
    const run = holdfast.mutex(name).run(async (lease) => {
      begun.resolve(lease);
      await new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
      await settled;
      lease.assertHeld();
      return "tidied up";
    });
    run.catch(begun.reject);
    return { run, lease: await begun.promise };
  };

  test("held lists the leases of this client with their owner, label and validity", async () => {
    const holdfast = await scene.another();
    expect(holdfast.held()).toEqual([]);
    const first = await holdfast.mutex(`${scene.name}:a`).acquire({ label: "release 4.2" });
    const second = await holdfast.semaphore(`${scene.name}:b`, { permits: 2 }).acquire({ permits: 2 });
    const waiting = holdfast.mutex(`${scene.name}:a`).acquire({ waitMs: LONG_MS });
    expect(holdfast.held()).toMatchObject([
      { kind: "mutex", name: `${scene.name}:a`, token: first.token, owner: first.owner, label: "release 4.2" },
      { kind: "semaphore", name: `${scene.name}:b`, token: second.token, owner: second.owner, label: undefined },
    ]);
    for (const { acquiredAt, validForMs } of holdfast.held()) {
      expect(Math.abs(Date.now() - acquiredAt.getTime())).toBeLessThan(LONG_MS);
      expect(validForMs).toBeGreaterThan(0);
    }
    await first.release();
    await second.release();
    await (await waiting).release();
    expect(holdfast.held()).toEqual([]);
  });

  test("close with graceMs aborts the work and releases its lease only when it ends", async () => {
    const holdfast = await scene.another();
    const settled = deferred<void>();
    const { run, lease } = await working(holdfast, scene.name, settled.promise);
    const next = scene.rival.acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    const closing = holdfast.close({ graceMs: LONG_MS });
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toMatchObject({ reason: "closing" });
    lease.assertHeld();
    await lease.extend(LONG_MS);
    expect(await scene.holders()).toHaveLength(1);
    expect(holdfast.held()).toMatchObject([{ name: scene.name, token: lease.token }]);
    await expect(holdfast.mutex(`${scene.name}:other`).acquire()).rejects.toThrow(ClosedError);
    settled.resolve();
    expect(await run).toBe("tidied up");
    const { released, unsettled } = await closing;
    expect(released).toMatchObject([{ kind: "mutex", name: scene.name, token: lease.token }]);
    expect(unsettled).toEqual([]);
    await (await next).release();
  });

  test("work that outlasts graceMs keeps its lock until the lease expires", async () => {
    const holdfast = await scene.another({ leaseMs: 2 * BRIEF_LEASE_MS });
    const { run, lease } = await working(holdfast, scene.name, new Promise(() => {}));
    void run.catch(() => {});
    const { released, unsettled } = await holdfast.close({ graceMs: 1 });
    expect(released).toEqual([]);
    expect(unsettled).toMatchObject([{ name: scene.name, token: lease.token }]);
    expect(() => lease.assertHeld()).toThrow("left it to expire");
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    // If the machine stalls until the lease expires, there is no holder.
    const holders = await scene.holders();
    for (const { owner } of holders) expect(owner).toBe(lease.owner);
    const next = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  test("close rejects all waiters immediately while work still runs", async () => {
    const holdfast = await scene.another();
    const settled = deferred<void>();
    const { run } = await working(holdfast, scene.name, settled.promise);
    const blocked = await scene.rivalHoldfast.mutex(`${scene.name}:2`).acquire();
    const waits = [
      ...Array.from({ length: 3 }, () => holdfast.mutex(scene.name).acquire({ waitMs: Infinity })),
      holdfast.mutex(scene.name).acquire({ waitMs: Infinity, fairness: "strict" }),
      holdfast.mutex(`${scene.name}:2`).acquire({ waitMs: Infinity }),
      holdfast.multiLock([`${scene.name}:1`, `${scene.name}:2`]).acquire({ waitMs: Infinity }),
    ];
    const ends = Promise.allSettled(waits);
    const held = async (name: string): Promise<boolean> =>
      (await scene.rivalHoldfast.mutex(name).inspect()).holders.length > 0;
    await until(() => held(`${scene.name}:1`), "the first of two to be held, and a wait for the second");
    await scene.queued(2);
    const closing = holdfast.close({ graceMs: LONG_MS });
    for (const end of await ends) {
      expect(end).toMatchObject({ status: "rejected", reason: { code: "ERR_LOCK_CLOSED" } });
    }
    await until(async () => (await scene.lock.inspect()).waiterCount === 0, "the queue to be empty");
    settled.resolve();
    await run;
    expect(new Set((await closing).released.map(({ name }) => name))).toEqual(new Set([scene.name, `${scene.name}:1`]));
    expect(await held(scene.name)).toBe(false);
    expect(await held(`${scene.name}:1`)).toBe(false);
    await blocked.release();
  });

  test("after close, no waiting caller of the same client gets the lock", async () => {
    const holdfast = await scene.another();
    const blocker = await scene.lock.acquire();
    let began = 0;
    const settled = deferred<void>();
    const runs = Array.from({ length: 5 }, () =>
      holdfast.mutex(scene.name).run(
        async () => {
          began += 1;
          await settled.promise;
        },
        { waitMs: Infinity },
      ),
    );
    const ends = Promise.allSettled(runs);
    await scene.queued(1);
    await blocker.release();
    await until(() => began === 1, "the first caller");
    const closing = holdfast.close({ graceMs: LONG_MS });
    await expect(runs[4]).rejects.toThrow(ClosedError);
    settled.resolve();
    const { released } = await closing;
    expect(released).toHaveLength(1);
    expect((await ends).map(({ status }) => status)).toEqual(["fulfilled", ...Array(4).fill("rejected")]);
    expect(began).toBe(1);
    await (await scene.rival.acquire({ waitMs: LONG_MS })).release();
  });

  test("close waits for all leases of a multi-lock and of a reentrant hold", async () => {
    const holdfast = await scene.another();
    const multi = await holdfast.multiLock([`${scene.name}:1`, `${scene.name}:2`]).acquire();
    const outer = await holdfast.reentrantMutex(scene.name).acquire();
    const inner = await holdfast.reentrantMutex(scene.name).acquire({ within: outer });
    const signals = [multi.signal, outer.signal, inner.signal];
    const closing = holdfast.close({ graceMs: LONG_MS });
    for (const { aborted, reason } of signals)
      expect({ aborted, why: reason.reason }).toEqual({ aborted: true, why: "closing" });
    multi.assertHeld();
    inner.assertHeld();
    expect(await inner.release()).toBe("released");
    outer.assertHeld();
    expect(await outer.release()).toBe("released");
    expect(await multi.release()).toBe("released");
    const { released, unsettled } = await closing;
    expect(released.map(({ name }) => name).toSorted()).toEqual([scene.name, `${scene.name}:1`, `${scene.name}:2`]);
    expect(unsettled).toEqual([]);
  });

  test("a second close waits for the first unless its graceMs ends the grace", async () => {
    const holdfast = await scene.another();
    const { run } = await working(holdfast, scene.name, new Promise(() => {}));
    void run.catch(() => {});
    const first = holdfast.close({ graceMs: 100 * LONG_MS });
    let isOver = false;
    const second = holdfast.close().then(() => {
      isOver = true;
    });
    await sleep(0);
    expect(isOver).toBe(false);
    await holdfast.close({ graceMs: 0 });
    await second;
    expect((await first).unsettled).toHaveLength(1);
  });

  test("close without graceMs releases held locks immediately and lists them", async () => {
    const holdfast = await scene.another();
    const { run, lease } = await working(holdfast, scene.name, new Promise(() => {}));
    void run.catch(() => {});
    const { released, unsettled } = await holdfast.close();
    expect(lease.signal.reason).toMatchObject({ reason: "closed" });
    expect(released).toMatchObject([{ name: scene.name, token: lease.token }]);
    expect(unsettled).toEqual([]);
    await (await scene.rival.acquire({ waitMs: 0 })).release();
    await expect(holdfast.close({ graceMs: -1 })).rejects.toThrow(RangeError);
    await expect(holdfast.close({ grace: 1 } as never)).rejects.toThrow(TypeError);
  });
}
