/** Tests callers of one client that share a claim, for every lock with a local queue. */
import { expect, test } from "vitest";
import { AcquireTimeoutError, ClosedError, type Lease, LeaseLostError } from "../index.js";
import { endOf, LONG_MS, SHORT_MS, sleep, until } from "./delays.js";
import type { MakeLock, Scene } from "./subject.js";

/** The number of leases that one grant can serve. */
const BLOCK = 32;

/** Registers the tests. */
export function cohortContract(scene: Scene, makeLock: MakeLock): void {
  const queued = (count: number): Promise<void> =>
    until(async () => (await scene.lock.inspect()).waiterCount === count, `${count} in the queue`);
  /** Starts `count` callers in the first client. Each holds the lock briefly and adds its lease to `held`. */
  const callers = (count: number, held: Lease[]): Promise<unknown>[] =>
    Array.from({ length: count }, () =>
      scene.lock.run(
        (lease) => {
          held.push(lease);
        },
        { waitMs: LONG_MS },
      ),
    );

  test("callers of one client share a place in the queue and hold in turn with rising tokens", async () => {
    const lease = await scene.lock.acquire();
    const held: Lease[] = [];
    const running = callers(10, held);
    await queued(1);
    await sleep(SHORT_MS);
    expect((await scene.lock.inspect()).waiterCount).toBe(1);
    await lease.release();
    await Promise.all(running);
    const tokens = held.map(({ token }) => token);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set([lease.token, ...tokens]).size).toBe(11);
    expect(tokens[0]).toBeGreaterThan(lease.token);
    expect((await scene.lock.inspect()).holders).toEqual([]);
  });

  test("another client is served after at most one block", async () => {
    const lease = await scene.lock.acquire();
    const order: string[] = [];
    const first = Array.from({ length: 2 * BLOCK }, () =>
      scene.lock.run(
        () => {
          order.push("first");
        },
        { waitMs: LONG_MS },
      ),
    );
    await queued(1);
    const rival = scene.rival.run(
      () => {
        order.push("rival");
      },
      { waitMs: LONG_MS },
    );
    await queued(2);
    await lease.release();
    await Promise.all([...first, rival]);
    expect(order.indexOf("rival")).toBeLessThanOrEqual(BLOCK);
    expect(order).toHaveLength(2 * BLOCK + 1);
  });

  test("many callers of two clients hold the lock one at a time, with rising tokens", async () => {
    const tokens: number[] = [];
    let holders = 0;
    let most = 0;
    const section = async ({ token }: Lease): Promise<void> => {
      holders += 1;
      most = Math.max(most, holders);
      tokens.push(token);
      await Promise.resolve();
      holders -= 1;
    };
    const caller = async (lock: Scene["lock"]): Promise<void> => {
      for (let i = 0; i < 10; i += 1) await lock.run(section, { waitMs: LONG_MS });
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => caller(i % 2 === 0 ? scene.lock : scene.rival)));
    expect(most).toBe(1);
    expect(tokens).toHaveLength(400);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(400);
  });

  test("a caller with strict fairness has its own place in the queue", async () => {
    const lease = await scene.lock.acquire();
    const waiting = Array.from({ length: 3 }, () => scene.lock.acquire({ waitMs: LONG_MS, fairness: "strict" }));
    await queued(3);
    await lease.release();
    for (const next of waiting) await (await next).release();
  });

  test("a caller with a different leaseMs or label has its own place in the queue", async () => {
    const lease = await scene.lock.acquire();
    const waiting = [
      scene.lock.acquire({ waitMs: LONG_MS }),
      scene.lock.acquire({ waitMs: LONG_MS, leaseMs: LONG_MS }),
      scene.lock.acquire({ waitMs: LONG_MS, label: "import" }),
      scene.lock.acquire({ waitMs: LONG_MS, label: "import" }),
    ];
    await queued(3);
    await lease.release();
    for (const next of waiting) await (await next).release();
  });

  test("an aborted caller keeps its client in the queue until the last caller has aborted", async () => {
    const lease = await scene.lock.acquire();
    const controllers = Array.from({ length: 3 }, () => new AbortController());
    const waiting = controllers.map(({ signal }) => scene.lock.acquire({ waitMs: Infinity, signal }));
    for (const each of waiting) each.catch(() => {});
    await queued(1);
    for (const [i, controller] of controllers.entries()) {
      controller.abort(`no longer ${i}`);
      await expect(waiting[i]).rejects.toBe(`no longer ${i}`);
      if (i < 2) expect((await scene.lock.inspect()).waiterCount).toBe(1);
    }
    await queued(0);
    await lease.release();
    await (await scene.rival.acquire({ waitMs: 0 })).release();
  });

  test("a caller that times out learns the holder, and the other callers keep waiting", async () => {
    const lease = await scene.rival.acquire();
    const patient = scene.lock.acquire({ waitMs: LONG_MS });
    await queued(1);
    const error = await endOf(() => scene.lock.acquire({ waitMs: SHORT_MS }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ holder: { owner: lease.owner, token: lease.token }, isOwn: false, waitMs: SHORT_MS });
    await lease.release();
    await (await patient).release();
  });

  test("callers that time out together all learn the holder and the number of clients ahead", async () => {
    const lease = await scene.rival.acquire();
    const ahead = scene.rival.acquire({ waitMs: LONG_MS });
    await queued(1);
    const patient = scene.lock.acquire({ waitMs: LONG_MS });
    await queued(2);
    const ends = await Promise.all(
      Array.from({ length: 40 }, () => endOf(() => scene.lock.acquire({ waitMs: SHORT_MS }))),
    );
    for (const error of ends) {
      expect(error).toBeInstanceOf(AcquireTimeoutError);
      expect(error).toMatchObject({ holder: { owner: lease.owner, token: lease.token }, waitersAhead: 1 });
    }
    await lease.release();
    await (await ahead).release();
    await (await patient).release();
  });

  test("a forced release of a later lease of a batch notifies its holder, and the next caller holds", async () => {
    const lease = await scene.lock.acquire();
    const waiting = Array.from({ length: 4 }, () => scene.lock.acquire({ waitMs: LONG_MS }));
    await queued(1);
    await lease.release();
    await (await waiting[0])?.release();
    const second = await waiting[1];
    if (second === undefined) throw new Error("no second lease");
    expect(await scene.rival.forceRelease({ token: second.token })).toBe(true);
    await until(() => second.signal.aborted, "the holder to be notified");
    expect(() => second.assertHeld()).toThrow(LeaseLostError);
    const third = await waiting[2];
    expect(third?.token).toBeGreaterThan(second.token);
    await third?.release();
    await (await waiting[3])?.release();
    await expect(second.release()).rejects.toThrow(LeaseLostError);
  });

  test("the remaining callers of a batch that a forced release ended come before later callers", async () => {
    const lease = await scene.lock.acquire();
    const order: string[] = [];
    const called = (who: string): Promise<Lease> =>
      scene.lock.acquire({ waitMs: LONG_MS }).then((granted) => {
        order.push(who);
        return granted;
      });
    const waiting = ["first", "second", "third"].map(called);
    await queued(1);
    await lease.release();
    const first = await waiting[0];
    // This caller has its own claim, which is granted before this client learns that the batch is over.
    const late = called("late");
    await queued(1);
    expect(await scene.rival.forceRelease({ token: first?.token ?? 0 })).toBe(true);
    for (const next of [...waiting.slice(1), late]) await (await next)?.release();
    await until(() => first?.signal.aborted === true, "the holder to be notified");
    expect(order).toEqual(["first", "second", "third", "late"]);
  });

  test("the caller after an extended lease gets a new claim with the lease length it asked for", async () => {
    const lease = await scene.lock.acquire();
    const waiting = [scene.lock.acquire({ waitMs: LONG_MS }), scene.lock.acquire({ waitMs: LONG_MS })];
    await queued(1);
    await lease.release();
    const first = await waiting[0];
    await first?.extend(3_600_000);
    await first?.release();
    const second = await waiting[1];
    expect(second?.owner).not.toBe(first?.owner);
    expect((await scene.holders())[0]?.leaseLeftMs).toBeLessThanOrEqual(30_000);
    await second?.release();
  });

  test("close rejects all waiting callers and empties the queue", async () => {
    const lease = await scene.rival.acquire();
    const closing = await scene.another();
    const lock = await makeLock(closing, scene.name);
    const waiting = Array.from({ length: 5 }, () => lock.acquire({ waitMs: LONG_MS }));
    const ends = Promise.allSettled(waiting);
    await queued(1);
    await closing.close();
    for (const end of await ends) {
      expect(end).toMatchObject({ status: "rejected", reason: expect.any(ClosedError) });
    }
    await queued(0);
    await lease.release();
  });

  test("close releases a held lock to waiters of other clients, not to local callers", async () => {
    const closing = await scene.another();
    const lock = await makeLock(closing, scene.name);
    const lease = await lock.acquire();
    const local = lock.acquire({ waitMs: LONG_MS }).catch((reason: unknown) => reason);
    await queued(1);
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await queued(2);
    await closing.close();
    expect(await local).toBeInstanceOf(ClosedError);
    expect(lease.signal.aborted).toBe(true);
    await (await waiting).release();
  });
}

/** Registers the tests for leases that can be exported. */
export function cohortHandOverContract(scene: Scene): void {
  test("a later lease of a batch keeps its token when adopted, and the next caller holds", async () => {
    const lease = await scene.lock.acquire();
    const waiting = Array.from({ length: 3 }, () => scene.lock.acquire({ waitMs: LONG_MS }));
    await until(async () => (await scene.lock.inspect()).waiterCount === 1, "the callers to queue");
    await lease.release();
    await (await waiting[0])?.release();
    const second = await waiting[1];
    if (second === undefined) throw new Error("no second lease");
    const exported: unknown = JSON.parse(JSON.stringify(second.export()));
    const adopted = await scene.rivalHoldfast.adopt(exported as ReturnType<Lease["export"]>);
    expect(adopted.token).toBe(second.token);
    await adopted.extend(LONG_MS);
    await expect(scene.holdfast.adopt(exported as ReturnType<Lease["export"]>)).rejects.toMatchObject({
      reason: "handed-over",
    });
    expect(await adopted.release()).toBe("released");
    const third = await waiting[2];
    expect(third?.token).toBeGreaterThan(adopted.token);
    await third?.release();
  });
}
