/** The contract suite for retained mutexes, which every store must pass. */
import { expect, test } from "vitest";
import type { Holdfast, Lease, LockOptions } from "../index.js";
import { retain } from "../retain/index.js";
import { LONG_MS, until } from "./delays.js";
import { type LockUnderTest, type StoreUnderTest, useScene } from "./subject.js";

/** Long enough that a test fails if it waits for the end of the retention. */
const OPTIONS = { retain: retain({ forMs: 200_000 }) } satisfies LockOptions;
const LEASE = { leaseMs: 600_000, waitMs: LONG_MS };

/** Registers the tests. Call it inside a `describe` that names the store. */
export function retainContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name, OPTIONS));

  /** Acquires and releases until the lock is retained, which needs an open inbox. Returns the last lease. */
  const retained = async (lock: LockUnderTest = scene.lock): Promise<Lease> => {
    let last = await lock.acquire(LEASE);
    await until(async () => {
      await last.release();
      const { owner } = last;
      last = await lock.acquire(LEASE);
      return last.owner === owner;
    }, "the lock to be retained");
    await last.release();
    return last;
  };
  const isFree = (): Promise<void> => until(async () => (await scene.holders()).length === 0, "the lock to be free");

  test("a released mutex is acquired again under the same claim, each time with a higher token", async () => {
    const tokens = [(await retained()).token];
    const owners = new Set<string>();
    const startedAtMs = performance.now();
    for (let i = 0; i < 100; i += 1) {
      const lease = await scene.lock.acquire(LEASE);
      tokens.push(lease.token);
      owners.add(lease.owner);
      await lease.release();
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
    // A claim reserves 31 tokens or more, so 100 leases need only a few claims. A claim also ends when it has served
    // callers for 20 ms in one turn of the event loop, as happens in a process that gets too little processor time.
    const longTurns = Math.floor((performance.now() - startedAtMs) / 20);
    expect(owners.size).toBeLessThan(6 + longTurns);
  });

  test("a retained mutex has a holder on the server, and no lease in this process", async () => {
    const { owner } = await retained();
    expect(await scene.holders()).toMatchObject([{ owner }]);
    expect(scene.holdfast.held().filter(({ name }) => name === scene.name)).toEqual([]);
  });

  test("a mutex without the option is not retained", async () => {
    const plain = scene.holdfast.mutex(scene.name);
    const first = await plain.acquire(LEASE);
    await first.release();
    expect(await scene.holders()).toEqual([]);
    const second = await plain.acquire(LEASE);
    await second.release();
    expect(second.owner).not.toBe(first.owner);
  });

  test("a waiter of another client gets a retained mutex", async () => {
    const { token } = await retained();
    const next = await scene.rival.acquire(LEASE);
    expect(next.token).toBeGreaterThan(token);
    await next.release();
  });

  test("two clients that use the same mutex in turn both get it", async () => {
    const tokens: number[] = [];
    const turns = async (lock: LockUnderTest): Promise<void> => {
      for (let i = 0; i < 20; i += 1) await lock.run(({ token }) => void tokens.push(token), LEASE);
    };
    await retained();
    await Promise.all([turns(scene.lock), turns(scene.rival)]);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(40);
  });

  test("a mutex is not retained if another client waits when it is released", async () => {
    await retained();
    const lease = await scene.lock.acquire(LEASE);
    const waiting = scene.rival.acquire(LEASE);
    await scene.queued(1);
    await lease.release();
    await (await waiting).release();
  });

  test("a refused tryAcquire from another client frees a retained mutex", async () => {
    await retained();
    let lease: Lease | null = null;
    await until(async () => {
      lease = await scene.rival.tryAcquire(LEASE);
      return lease !== null;
    }, "tryAcquire to get the lock");
    await (lease as Lease | null)?.release();
  });

  test("after a refused tryAcquire from another client, the mutex is free between two callers", async () => {
    await retained();
    expect(await scene.rival.tryAcquire(LEASE)).toBeNull();
    await isFree();
    for (let i = 0; i < 3; i += 1) {
      await (await scene.lock.acquire(LEASE)).release();
      const lease = await scene.rival.tryAcquire(LEASE);
      expect(lease).not.toBeNull();
      await lease?.release();
    }
  });

  test("tryAcquire from the same client gets a retained mutex", async () => {
    const { token } = await retained();
    const lease = await scene.lock.tryAcquire(LEASE);
    expect(lease?.token).toBeGreaterThan(token);
    await lease?.release();
  });

  test("callers of the same client with other options get a retained mutex", async () => {
    for (const options of [{ fairness: "strict" }, { label: "other" }, { leaseMs: 700_000 }] as const) {
      const { token } = await retained();
      const lease = await scene.lock.acquire({ ...LEASE, ...options });
      expect(lease.token).toBeGreaterThan(token);
      await lease.release();
    }
  });

  test("a signaled waiter gets a retained mutex", async () => {
    const { holdfast, rivalHoldfast, name } = scene;
    const condition = rivalHoldfast.mutex(name).condition("ready");
    const woken = condition.wait(await scene.rival.acquire(LEASE), LEASE);
    await retained();
    const lease = await scene.lock.acquire(LEASE);
    expect(await holdfast.mutex(name).condition("ready").signal(lease)).toBe(1);
    await lease.release();
    await (await woken).release();
  });

  test("a pause frees a retained mutex", async () => {
    await retained();
    await scene.rivalHoldfast.pause(scene.name, { by: "an operator", label: "a test" });
    await isFree();
    await scene.rivalHoldfast.resume(scene.name, { by: "an operator" });
    await (await scene.lock.acquire(LEASE)).release();
  });

  test("a waiting multi-lock of another client gets a retained mutex", async () => {
    await retained();
    const both = scene.rivalHoldfast.multiLock([scene.name, `${scene.name}:other`]);
    await (await both.acquire(LEASE)).release();
  });

  test("a refused multi-lock of another client frees a retained mutex", async () => {
    await retained();
    const both = scene.rivalHoldfast.multiLock([scene.name, `${scene.name}:other`]);
    await until(async () => {
      const lease = await both.tryAcquire(LEASE);
      await lease?.release();
      return lease !== null;
    }, "tryAcquire to get both");
  });

  test("a multi-lock of the same client gets a retained mutex", async () => {
    await retained();
    const lease = await scene.holdfast.multiLock([scene.name, `${scene.name}:other`]).tryAcquire(LEASE);
    expect(lease).not.toBeNull();
    await lease?.release();
  });

  test("a forced release frees a retained mutex", async () => {
    const { owner, token } = await retained();
    expect(await scene.rival.forceRelease({ owner })).toBe(true);
    await until(async () => {
      const lease = await scene.lock.acquire(LEASE);
      await lease.release();
      return lease.owner !== owner && lease.token > token;
    }, "a new claim");
  });

  test("a lease under a retained claim can move to another client", async () => {
    const { owner } = await retained();
    const lease = await scene.lock.acquire(LEASE);
    expect(lease.owner).toBe(owner);
    const adopted = await scene.rivalHoldfast.adopt(lease.export());
    expect(adopted.token).toBe(lease.token);
    await adopted.release();
    await isFree();
  });

  test("close releases a retained mutex", async () => {
    for (const graceMs of [undefined, LONG_MS]) {
      const holdfast: Holdfast = await scene.another();
      await retained(holdfast.mutex(scene.name, OPTIONS));
      expect(await holdfast.close({ graceMs })).toEqual({ released: [], unsettled: [] });
      expect(await scene.holders()).toEqual([]);
    }
  });

  test("a reentrant mutex can be retained", async () => {
    const lock = scene.holdfast.reentrantMutex(scene.name, OPTIONS);
    const { token } = await retained(lock);
    const [outer, inner] = await lock.run(async (first) => [first.token, await lock.run(({ token: t }) => t)], LEASE);
    expect(outer).toBeGreaterThan(token);
    expect(inner).toBe(outer);
    await (await scene.rival.acquire(LEASE)).release();
  });

  test("the option is refused with a key, with a wrong value and with a short lease", async () => {
    const { holdfast, name, lock } = scene;
    expect(() => holdfast.mutex(name, { ...OPTIONS, key: "a" })).toThrow('retain cannot be used with key; got key "a"');
    expect(() => holdfast.mutex(name, { retain: 2_000 as never })).toThrow("retain must come from retain(); got 2000");
    expect(() => retain({ forMs: -1 })).toThrow("forMs must be a whole number from 0 to 10512000000; got -1");
    expect(() => retain(2_000 as never)).toThrow("options must be an object with forMs; got 2000");
    // Callers with another `retain`, or none, are not affected.
    const held = await scene.rival.acquire(LEASE);
    const short = { leaseMs: 599_999, waitMs: LONG_MS };
    const waiting = [holdfast.mutex(name), holdfast.mutex(name, { retain: retain({ forMs: 1 }) })].map((other) =>
      other.acquire(short),
    );
    const error: unknown = await lock.acquire(short).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: "retain.forMs must be at most 199999, a third of leaseMs; got 200000" });
    await held.release();
    for (const lease of waiting) await (await lease).release();
  });
}
