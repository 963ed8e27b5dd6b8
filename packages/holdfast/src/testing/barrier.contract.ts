/** The contract suite for a barrier, which every store must pass. */
import { expect, test } from "vitest";
import {
  type ArriveOptions,
  type Barrier,
  BrokenBarrierError,
  CapacityMismatchError,
  ClosedError,
  WaitTimeoutError,
} from "../index.js";
import { LONG_MS, SHORT_MS, sleep, until, withLeaseInTime } from "./delays.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function barrierContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));
  const first = (parties = 3): Barrier => scene.holdfast.barrier(scene.name, { parties });
  const second = (parties = 3): Barrier => scene.rivalHoldfast.barrier(scene.name, { parties });
  const arrived = (count: number): Promise<void> =>
    until(async () => (await first().inspect()).arrived.length === count, `${count} to arrive`);
  /** Arrives, and resolves to the result or the error. */
  const arrive = (barrier: Barrier, options: ArriveOptions = {}): Promise<unknown> =>
    barrier.arrive({ waitMs: LONG_MS, ...options }).catch((reason: unknown) => reason);

  test("all parties pass when the last one arrives, each with its index", async () => {
    let passed = 0;
    const one = first().arrive({ waitMs: LONG_MS, label: "loader" });
    await arrived(1);
    const two = second().arrive({ waitMs: LONG_MS });
    for (const arrival of [one, two]) {
      void arrival.then(() => {
        passed += 1;
      });
    }
    await arrived(2);
    expect(await second().inspect()).toMatchObject({ kind: "barrier", parties: 3, generation: 1, broken: undefined });
    expect((await second().inspect()).arrived[0]).toMatchObject({ label: "loader" });
    await until(async () => (await second().inspect()).arrived[0]?.pid === process.pid, "the party's record");
    await sleep(SHORT_MS);
    expect(passed).toBe(0);
    const three = await second().arrive({ waitMs: 0 });
    expect([await one, await two, three]).toEqual([
      { generation: 1, index: 0 },
      { generation: 1, index: 1 },
      { generation: 1, index: 2 },
    ]);
    expect(await first().inspect()).toMatchObject({ generation: 2, arrived: [] });
  });

  test("no party gets more than one generation ahead of another", async () => {
    const phases = [0, 0, 0];
    const party = async (barrier: Barrier, me: number): Promise<void> => {
      for (let phase = 1; phase <= 15; phase += 1) {
        phases[me] = phase;
        const { generation } = await barrier.arrive({ waitMs: LONG_MS });
        expect(generation).toBe(phase);
        for (const other of phases) expect(other).toBeGreaterThanOrEqual(phase);
      }
    };
    await Promise.all([party(first(), 0), party(second(), 1), party(first(), 2)]);
  });

  test("a barrier for one party does not wait", async () => {
    expect(await first(1).arrive()).toEqual({ generation: 1, index: 0 });
    expect(await first(1).arrive({ waitMs: 0 })).toEqual({ generation: 2, index: 0 });
  });

  test("a party that times out breaks the barrier for all parties until a reset", async () => {
    const patient = arrive(first());
    await arrived(1);
    const impatient: unknown = await arrive(second(), { waitMs: 2 * SHORT_MS, label: "impatient" });
    expect(impatient).toBeInstanceOf(WaitTimeoutError);
    const error = await patient;
    expect(error).toBeInstanceOf(BrokenBarrierError);
    expect(error).toMatchObject({
      code: "ERR_LOCK_BROKEN_BARRIER",
      lockName: scene.name,
      generation: 1,
      reason: "timed-out",
      by: { label: "impatient", pid: process.pid },
    });
    expect(await arrive(first())).toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER", reason: "timed-out" });
    expect((await first().inspect()).broken).toMatchObject({ reason: "timed-out", by: { label: "impatient" } });
    expect(await second().reset()).toBe(2);
    const passages = await Promise.all([first(), second(), second()].map((barrier) => arrive(barrier)));
    expect(passages.map((passage) => (passage as { generation: number }).generation)).toEqual([2, 2, 2]);
  });

  test("an aborted party fails with its own reason, and the others learn of the abort", async () => {
    const controller = new AbortController();
    const leaving = arrive(first(), { waitMs: Infinity, signal: controller.signal });
    await arrived(1);
    const staying = arrive(second());
    await arrived(2);
    controller.abort("enough");
    expect(await leaving).toBe("enough");
    expect(await staying).toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER", reason: "aborted" });
  });

  test("a party whose Holdfast closes breaks the generation", async () => {
    const holdfast = await scene.another({ clientName: "closing" });
    const leaving = arrive(holdfast.barrier(scene.name, { parties: 3 }));
    await arrived(1);
    const staying = arrive(first());
    await arrived(2);
    await holdfast.close();
    expect(await leaving).toBeInstanceOf(ClosedError);
    expect(await staying).toMatchObject({ reason: "left", by: { clientName: "closing" } });
  });

  test("a waiting party keeps its arrival alive beyond leaseMs", () =>
    withLeaseInTime(async (leaseMs) => {
      const name = `${scene.name}:${leaseMs}`;
      const [here, there] = [scene.holdfast, scene.rivalHoldfast].map((holdfast) =>
        holdfast.barrier(name, { parties: 2 }),
      );
      const one = arrive(here as Barrier, { leaseMs });
      await until(async () => (await there?.inspect())?.arrived.length === 1, "one to arrive");
      await sleep(3 * leaseMs);
      expect(await there?.arrive({ waitMs: 0 })).toEqual({ generation: 1, index: 1 });
      expect(await one).toEqual({ generation: 1, index: 0 });
    }));

  test("a reset breaks the current generation for its waiters and begins the next one", async () => {
    const waiting = [arrive(first()), arrive(second())];
    await arrived(2);
    expect(await first().reset()).toBe(2);
    for (const error of await Promise.all(waiting)) {
      expect(error).toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER", generation: 1, reason: "reset", by: undefined });
    }
    expect(await first().inspect()).toMatchObject({ generation: 2, arrived: [], broken: undefined });
  });

  test("a waiter learns of a break even if a reset follows immediately", async () => {
    for (let i = 0; i < 10; i += 1) {
      const controller = new AbortController();
      const leaving = arrive(first(), { signal: controller.signal });
      const staying = arrive(second());
      await arrived(2);
      controller.abort();
      await leaving;
      await first().reset();
      expect(await staying).toBeInstanceOf(BrokenBarrierError);
    }
  });

  test("an arrival with waitMs 0 passes only as the last party and otherwise leaves no trace", async () => {
    expect(await arrive(first(2), { waitMs: 0 })).toBeInstanceOf(WaitTimeoutError);
    expect((await first(2).inspect()).arrived).toEqual([]);
    const one = arrive(second(2));
    await arrived(1);
    expect(await first(2).arrive({ waitMs: 0 })).toEqual({ generation: 1, index: 1 });
    expect(await one).toEqual({ generation: 1, index: 0 });
  });

  test("clients must declare the same number of parties, and a reset can change it", async () => {
    const waiting = arrive(first(2));
    await arrived(1);
    const error = await arrive(second(3));
    expect(error).toBeInstanceOf(CapacityMismatchError);
    expect(error).toMatchObject({ code: "ERR_LOCK_CAPACITY_MISMATCH", capacity: 2, declared: 3 });
    await second(3).reset();
    expect(await waiting).toMatchObject({ reason: "reset" });
    expect(await arrive(first(2))).toBeInstanceOf(CapacityMismatchError);
    expect((await first().inspect()).parties).toBe(3);
  });

  test("an abort that races with the last arrival breaks the barrier for all others or none", async () => {
    for (let i = 0; i < 15; i += 1) {
      const controller = new AbortController();
      const barrier = `${scene.name}:${i}`;
      const make = (holdfast = scene.holdfast): Barrier => holdfast.barrier(barrier, { parties: 3 });
      const leaving = arrive(make(), { signal: controller.signal });
      const others = [arrive(make(scene.rivalHoldfast))];
      await until(async () => (await make().inspect()).arrived.length === 2, "two to arrive");
      others.push(arrive(make(scene.rivalHoldfast)));
      for (let turn = 0; turn < i % 5; turn += 1) await new Promise(setImmediate);
      controller.abort();
      await leaving;
      const isBroken = (await Promise.all(others)).map((end) => end instanceof BrokenBarrierError);
      expect(new Set(isBroken).size).toBe(1);
    }
  });

  test("invalid arguments are rejected by name", async () => {
    expect(() => first(0)).toThrow(/parties must be a whole number from 1 to 10000/);
    expect(() => scene.holdfast.barrier(scene.name, {} as { parties: number })).toThrow(/parties/);
    await expect(first().arrive({ leaseMs: 86_400_000 })).rejects.toThrow(/leaseMs/);
  });

  test("every key on the server expires", async () => {
    const waiting = arrive(first());
    await arrived(1);
    expect(await scene.server.keysWith(scene.name)).toHaveLength(3);
    await first().reset();
    await waiting;
    const keys = await scene.server.keysWith(scene.name);
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(await scene.server.pttl(key), key).toBeGreaterThan(0);
  });
}
