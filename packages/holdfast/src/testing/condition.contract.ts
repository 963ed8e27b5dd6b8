/** The contract suite for a condition on a mutex, which every store must pass. */
import { expect, test } from "vitest";
import { ClosedError, type Condition, type Lease, LeaseLostError, WaitTimeoutError } from "../index.js";
import { BRIEF_LEASE_MS, endOf, LONG_MS, SHORT_MS, SOON_MS, until } from "./delays.js";
import { AWKWARD_NAMES } from "./inspection.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function conditionContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));
  const first = (name = "ready"): Condition => scene.holdfast.mutex(scene.name).condition(name);
  const second = (name = "ready"): Condition => scene.rivalHoldfast.mutex(scene.name).condition(name);
  const waiting = (count: number, condition = first()): Promise<void> =>
    until(async () => (await condition.inspect()).waiterCount === count, `${count} to wait for a signal`);

  type WaitOptions = Parameters<Condition["wait"]>[1];
  /** Adds a waiter to the queue. Resolves to an object, because `await` would also wait for a bare promise. */
  const waitOn = async (
    acquiring: Promise<Lease>,
    condition: Condition,
    options: WaitOptions = { waitMs: LONG_MS },
  ): Promise<{ readonly end: Promise<Lease> }> => {
    const lease = await acquiring;
    const before = (await condition.inspect()).waiterCount;
    const end = condition.wait(lease, options);
    end.catch(() => {});
    await waiting(before + 1, condition);
    return { end };
  };

  const waitingFirst = (options?: WaitOptions): Promise<{ readonly end: Promise<Lease> }> =>
    waitOn(scene.lock.acquire({ waitMs: LONG_MS }), first(), options);
  const waitingSecond = (options?: WaitOptions): Promise<{ readonly end: Promise<Lease> }> =>
    waitOn(scene.rival.acquire({ waitMs: LONG_MS }), second(), options);

  test("a wait releases the mutex, and a signal returns it in a lease with a higher token", async () => {
    const old = await scene.lock.acquire();
    const { signal } = old;
    const end = first().wait(old, { waitMs: LONG_MS, label: "consumer" });
    const holder = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(old.validForMs()).toBe(0);
    await until(async () => (await first().inspect()).waiters[0]?.pid === process.pid, "the waiter's record");
    expect((await first().inspect()).waiters).toMatchObject([{ label: "consumer" }]);
    expect(await second().signal(holder)).toBe(1);
    holder.assertHeld();
    await holder.release();
    const lease = await end;
    expect(lease.token).toBeGreaterThan(holder.token);
    expect(lease.owner).not.toBe(old.owner);
    expect(await old.release()).toBe("released");
    expect(signal.aborted).toBe(false);
    lease.assertHeld();
    expect(await scene.rival.tryAcquire()).toBeNull();
    expect(await lease.release()).toBe("released");
    await (await scene.rival.acquire({ waitMs: 0 })).release();
  });

  test("a wait hands the mutex to the next waiter in its queue", async () => {
    const lease = await scene.lock.acquire();
    const queued = scene.rival.acquire({ waitMs: LONG_MS });
    await until(async () => (await scene.lock.inspect()).waiterCount === 1, "the rival to queue");
    const end = first().wait(lease, { waitMs: LONG_MS });
    const holder = await queued;
    await second().signal(holder);
    await holder.release();
    await (await end).release();
  });

  test("each signal wakes one waiter, in order of arrival", async () => {
    const order: number[] = [];
    const ends: Promise<void>[] = [];
    for (let i = 0; i < 4; i += 1) {
      const { end } = await (i % 2 === 0 ? waitingFirst() : waitingSecond());
      ends.push(
        end.then(async (lease) => {
          order.push(i);
          await lease.release();
        }),
      );
    }
    for (let i = 0; i < 4; i += 1) {
      const holder = await scene.lock.acquire({ waitMs: LONG_MS });
      expect(await first().signal(holder)).toBe(1);
      expect((await first().inspect()).waiterCount).toBe(3 - i);
      await holder.release();
      await ends[i];
    }
    expect(order).toEqual([0, 1, 2, 3]);
  });

  test("signalAll wakes all waiters in order, each holding the mutex alone", async () => {
    const order: number[] = [];
    const tokens: number[] = [];
    let holders = 0;
    const ends: Promise<void>[] = [];
    for (let i = 0; i < 6; i += 1) {
      const { end } = await (i % 2 === 0 ? waitingFirst() : waitingSecond());
      ends.push(
        end.then(async (lease) => {
          holders += 1;
          expect(holders).toBe(1);
          order.push(i);
          tokens.push(lease.token);
          await Promise.resolve();
          holders -= 1;
          await lease.release();
        }),
      );
    }
    const holder = await scene.lock.acquire({ waitMs: LONG_MS });
    expect(await first().signalAll(holder)).toBe(6);
    await holder.release();
    await Promise.all(ends);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(tokens.toSorted((a, b) => a - b)).toEqual(tokens);
  });

  test("a signal without waiters has no effect", async () => {
    const end = await endOf(async () => {
      const holder = await scene.lock.acquire();
      expect(await first().signal(holder)).toBe(0);
      expect(await first().signalAll(holder)).toBe(0);
      return first().wait(holder, { waitMs: SHORT_MS });
    });
    expect(end).toBeInstanceOf(WaitTimeoutError);
  });

  test("concurrent signals wake one waiter each", async () => {
    const { end: one } = await waitingFirst();
    const { end: two } = await waitingSecond();
    const { end: three } = await waitingFirst();
    const holder = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(await Promise.all([second().signal(holder), second().signal(holder)])).toEqual([1, 1]);
    await holder.release();
    await (await one).release();
    await (await two).release();
    const last = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(await second().signal(last)).toBe(1);
    await last.release();
    await (await three).release();
  });

  test("a waiter that times out holds nothing and takes no signal from another waiter", async () => {
    const { end: impatient } = await waitingFirst({ waitMs: SOON_MS });
    const { end: patient } = await waitingSecond();
    const error: unknown = await impatient.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(WaitTimeoutError);
    expect(error).toMatchObject({ code: "ERR_LOCK_WAIT_TIMEOUT", lockName: scene.name, waitMs: SOON_MS });
    expect(String(error)).toContain('the condition "ready" was not signaled');
    const holder = await scene.lock.acquire({ waitMs: 0 });
    expect(await first().signal(holder)).toBe(1);
    await holder.release();
    await (await patient).release();
  });

  test("a wait with waitMs 0 releases the mutex", async () => {
    const lease = await scene.lock.acquire();
    await expect(first().wait(lease, { waitMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await (await scene.rival.acquire({ waitMs: 0 })).release();
    expect((await first().inspect()).waiterCount).toBe(0);
  });

  test("an aborted wait fails with the reason of the signal and holds nothing", async () => {
    const controller = new AbortController();
    const { end } = await waitingFirst({ waitMs: Infinity, signal: controller.signal });
    const reason = { why: "shutdown" };
    controller.abort(reason);
    await expect(end).rejects.toBe(reason);
    await waiting(0);
    await (await scene.rival.acquire({ waitMs: 0 })).release();
  });

  test("a wait with an already aborted signal keeps the mutex", async () => {
    const lease = await scene.lock.acquire();
    const reason = new Error("too late");
    await expect(first().wait(lease, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    lease.assertHeld();
    expect(await lease.release()).toBe("released");
  });

  test("a signaled waiter that gives up before it gets the mutex passes the signal on", async () => {
    const controller = new AbortController();
    const { end: leaving } = await waitingFirst({ waitMs: Infinity, signal: controller.signal });
    const { end: next } = await waitingSecond();
    const holder = await scene.lock.acquire({ waitMs: LONG_MS });
    expect(await first().signal(holder)).toBe(1);
    controller.abort();
    await expect(leaving).rejects.toBe(controller.signal.reason);
    await waiting(0);
    await holder.release();
    await (await next).release();
  });

  test("a signal that races with an abort wakes that waiter or the next one", async () => {
    // Loads the script. Otherwise the first signal would be sent twice, and the release would arrive before the second
    // copy.
    const early = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(await second().signal(early)).toBe(0);
    await early.release();
    for (let i = 0; i < 12; i += 1) {
      const controller = new AbortController();
      const { end: leaving } = await waitingFirst({ waitMs: Infinity, signal: controller.signal });
      const { end: staying } = await waitingSecond();
      const holder = await scene.rival.acquire({ waitMs: LONG_MS });
      const signalling = second().signal(holder);
      const releasing = i % 2 === 0 ? holder.release() : undefined;
      if (i % 3 === 1) await signalling;
      if (i % 3 === 2) await releasing;
      controller.abort();
      expect(await signalling).toBe(1);
      await (releasing ?? holder.release());
      const left = await leaving.catch(() => null);
      if (left !== null) {
        // The mutex was granted before the abort, so the other waiter is still waiting.
        await second().signal(left);
        await left.release();
      }
      const startedAtMs = performance.now();
      await (await staying).release();
      expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);
    }
  });

  test("a lost or released lease can neither wait nor signal", async () => {
    const lost = await scene.lock.acquire({ leaseMs: LONG_MS });
    await scene.server.delete(...(await scene.server.keysWith(scene.name)));
    const other = await scene.rival.acquire();
    await expect(first().signal(lost)).rejects.toThrow(LeaseLostError);
    await expect(first().wait(lost)).rejects.toThrow(LeaseLostError);
    other.assertHeld();
    await other.release();

    const again = await scene.lock.acquire({ leaseMs: LONG_MS });
    await scene.server.delete(...(await scene.server.keysWith(scene.name)));
    await expect(first().wait(again)).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" });
    expect((await first().inspect()).waiterCount).toBe(0);
    const released = await scene.lock.acquire();
    await released.release();
    await expect(first().wait(released)).rejects.toThrow(LeaseLostError);
    await expect(first().signalAll(released)).rejects.toThrow(LeaseLostError);
  });

  test("only a lease of the same mutex can wait or signal", async () => {
    const other = await scene.holdfast.mutex(`${scene.name}:other`).acquire();
    await expect(first().wait(other)).rejects.toThrow(TypeError);
    await expect(first().signal(other)).rejects.toThrow(TypeError);
    await expect(first().wait(undefined as unknown as Lease)).rejects.toThrow(TypeError);
    other.assertHeld();
    await other.release();
  });

  test("an expired lease cannot wait and does not affect the next holder", async () => {
    const stale = await scene.lock.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const fresh = await scene.rival.acquire({ waitMs: LONG_MS });
    await expect(first().wait(stale)).rejects.toThrow(LeaseLostError);
    expect(await fresh.release()).toBe("released");
  });

  test("close ends a wait, and the next waiter gets the signal", async () => {
    const holdfast = await scene.another();
    const mutex = holdfast.mutex(scene.name);
    const end = mutex.condition("ready").wait(await mutex.acquire(), { waitMs: Infinity });
    end.catch(() => {});
    await waiting(1);
    const { end: next } = await waitingFirst();
    await holdfast.close();
    await expect(end).rejects.toThrow(ClosedError);
    const holder = await scene.rival.acquire({ waitMs: LONG_MS });
    expect(await second().signal(holder)).toBe(1);
    await holder.release();
    await (await next).release();
  });

  test("a condition can have any name and is separate from all others", async () => {
    const names = [...AWKWARD_NAMES, ":signalled", "ready:signalled", "ready%3Asignalled"];
    const holder = await scene.lock.acquire();
    for (const name of names) expect(await first(name).signal(holder)).toBe(0);
    const end = first("a:queue").wait(holder, { waitMs: LONG_MS });
    await waiting(1, first("a:queue"));
    const signaller = await scene.rival.acquire({ waitMs: LONG_MS });
    for (const name of names.filter((name) => name !== "a:queue")) {
      expect(await second(name).signalAll(signaller)).toBe(0);
    }
    expect(await second("a:queue").signalAll(signaller)).toBe(1);
    await signaller.release();
    await (await end).release();
    expect(() => first("")).toThrow(RangeError);
  });

  test("a condition works on a mutex with a mapped key", async () => {
    for (const key of [`legacy:${scene.name}`, `legacy:{${scene.name}}:lock`]) {
      const mutex = scene.holdfast.mutex(scene.name, { key });
      const rival = scene.rivalHoldfast.mutex(scene.name, { key });
      const end = mutex.condition("c").wait(await mutex.acquire(), { waitMs: LONG_MS });
      const holder = await rival.acquire({ waitMs: LONG_MS });
      await until(async () => (await rival.condition("c").inspect()).waiterCount === 1, "the waiter");
      expect(await rival.condition("c").signal(holder)).toBe(1);
      await holder.release();
      await (await end).release();
    }
  });

  test("a condition leaves only keys that expire on the server", async () => {
    const { end } = await waitingFirst();
    const holder = await scene.rival.acquire({ waitMs: LONG_MS });
    for (const key of await scene.server.keysWith(scene.name)) {
      expect(await scene.server.pttl(key), key).toBeGreaterThan(0);
    }
    await second().signal(holder);
    await holder.release();
    await (await end).release();
    for (const key of await scene.server.keysWith(scene.name)) {
      expect(key).toMatch(/:(fence|signalled)$/);
      expect(await scene.server.pttl(key), key).toBeGreaterThan(0);
    }
  });
}
