/** The contract suite for pauses, for every kind that can be paused. Every store must pass it. */
import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  type Holdfast,
  type Lease,
  LeaseLostError,
  PausedError,
  type PauseKind,
} from "../index.js";
import { channels } from "../internal.js";
import { endOf, LONG_MS, SHORT_MS, until, withLeaseInTime } from "./delays.js";
import { type LockUnderTest, type StoreUnderTest, useScene } from "./subject.js";

const BY = "ana@ops-1";
const LABEL = "db / maintenance,\n100 % of it";

const KINDS: Readonly<Record<PauseKind, (holdfast: Holdfast, name: string) => LockUnderTest>> = {
  mutex: (holdfast, name) => holdfast.mutex(name),
  "reentrant-mutex": (holdfast, name) => holdfast.reentrantMutex(name),
  semaphore: (holdfast, name) => holdfast.semaphore(name, { permits: 1 }),
  "read-write-lock": (holdfast, name) => holdfast.readWriteLock(name).write,
  election: (holdfast, name) => holdfast.election(name),
};

/** Registers the tests. Call it inside a `describe` that names the store. */
export function pauseContract(subject: StoreUnderTest): void {
  for (const [kind, makeLock] of Object.entries(KINDS)) {
    describe(kind, () => pauseOfAKind(subject, kind as PauseKind, makeLock));
  }
  describe("features of single kinds", () => pauseBeside(subject));
}

function pauseOfAKind(
  subject: StoreUnderTest,
  kind: PauseKind,
  makeLock: (holdfast: Holdfast, name: string) => LockUnderTest,
): void {
  const scene = useScene(subject, makeLock);
  const pause = (untilAtMs?: number): ReturnType<Holdfast["pause"]> =>
    scene.rivalHoldfast.pause(scene.name, {
      kind,
      label: LABEL,
      by: BY,
      ...(untilAtMs !== undefined && { untilAtMs }),
    });
  /** Starts a pause that ends soon. Retries with a later end if the end has passed before the request is processed. */
  const pauseBriefly = async (): Promise<Awaited<ReturnType<typeof pause>>> => {
    const made: Awaited<ReturnType<typeof pause>>[] = [];
    await withLeaseInTime(async (ms) => void made.push(await pause(Date.now() + ms)));
    return made[0] as (typeof made)[0];
  };
  const resume = (): ReturnType<Holdfast["resume"]> => scene.rivalHoldfast.resume(scene.name, { kind, by: "ben" });

  test("a paused free lock refuses immediately with the author and label until it is resumed", async () => {
    const beganAtMs = Date.now();
    const paused = await pause();
    expect(paused).toMatchObject({ outcome: "paused", holders: [], waiterCount: 0 });
    expect(paused.pause).toMatchObject({ by: BY, label: LABEL, untilAtMs: undefined });
    expect(Math.abs(paused.pause.sinceAtMs - beganAtMs)).toBeLessThan(LONG_MS);

    const error: unknown = await scene.lock.acquire({ waitMs: LONG_MS }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PausedError);
    const { sinceAtMs } = paused.pause;
    expect(error).toMatchObject({ code: "ERR_LOCK_PAUSED", by: BY, label: LABEL, sinceAtMs, untilAtMs: undefined });
    expect((error as Error).message).toContain(`paused by "${BY}" for "db / maintenance,\\n100 % of it"`);
    await expect(scene.lock.acquire({ waitMs: 0 })).rejects.toThrow(PausedError);
    expect(await scene.lock.tryAcquire()).toBeNull();
    expect(await scene.lock.inspect()).toMatchObject({ holders: [], waiterCount: 0, pause: paused.pause });

    const resumed = await resume();
    expect(resumed).toMatchObject({ outcome: "resumed", pause: paused.pause, waiterCount: 0 });
    const lease = await scene.lock.acquire({ waitMs: 0 });
    expect((await scene.lock.inspect()).pause).toBeUndefined();
    await lease.release();
    expect(await resume()).toEqual({ outcome: "not-paused" });
    for (const key of await scene.server.keysWith(scene.name)) {
      // The keys expire as usual, even though the pause had no end.
      expect(await scene.server.pttl(key), key).toBeGreaterThan(0);
      expect(await scene.server.pttl(key), key).toBeLessThan(3_600_000);
    }
  });

  test("a pause leaves the holder alone, and earlier waiters are granted in order after it", async () => {
    const lease = await scene.lock.acquire();
    const order: string[] = [];
    const served = (who: string, acquiring: Promise<Lease>): Promise<void> =>
      acquiring.then(async (next) => {
        order.push(who);
        await next.release();
      });
    const before = served("before", scene.rival.acquire({ waitMs: LONG_MS }));
    await scene.queued(1);

    const paused = await pause();
    expect(paused).toMatchObject({ outcome: "paused", waiterCount: 1 });
    expect(paused.holders.map(({ owner }) => owner)).toEqual([lease.owner]);
    const late = await scene.another();
    await expect(makeLock(late, scene.name).acquire({ waitMs: LONG_MS })).rejects.toThrow(PausedError);
    const through = served("through", makeLock(late, scene.name).acquire({ waitMs: LONG_MS, throughPause: true }));
    await scene.queued(2);
    await lease.extend(LONG_MS);
    expect(await lease.release()).toBe("released");

    expect(await scene.lock.tryAcquire()).toBeNull();
    expect(await scene.lock.inspect()).toMatchObject({ holders: [], waiterCount: 2, pause: { by: BY } });
    expect(order).toEqual([]);
    expect(await resume()).toMatchObject({ outcome: "resumed", waiterCount: 2 });
    await Promise.all([before, through]);
    expect(order).toEqual(["before", "through"]);
  });

  test("a waiter with throughPause times out after waitMs with an error that names the pause", async () => {
    await pause();
    const error = await endOf(() => scene.lock.acquire({ waitMs: SHORT_MS, throughPause: true }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ holder: undefined, waitersAhead: 0, pause: { by: BY, label: LABEL } });
    expect((error as Error).message).toContain("paused by");
    await resume();
  });

  test("after a pause ends by itself, waiters and new callers are granted", async () => {
    const { pause: made } = await pauseBriefly();
    const waiting = scene.lock.acquire({ waitMs: LONG_MS, throughPause: true });
    const lease = await waiting;
    expect(Math.floor(lease.token / 1_000)).toBeGreaterThanOrEqual(made.untilAtMs ?? Infinity);
    await lease.release();
    await pauseBriefly();
    await until(async () => (await scene.lock.inspect()).pause === undefined, "the end");
    await until(async () => {
      const next = await scene.lock.tryAcquire();
      return next !== null && (await next.release()) === "released";
    }, "a grant after the pause");
    await expect(pause(Date.now() - 60_000)).rejects.toThrow(RangeError);
  });

  test("a pause that ends before the lease of the holder has no effect", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const { pause: made } = await pauseBriefly();
    const waiting = scene.rival.acquire({ waitMs: LONG_MS, throughPause: true });
    await scene.queued(1);
    await until(() => Date.now() > (made.untilAtMs ?? 0) + 1, "its end");
    expect((await scene.lock.inspect()).pause).toBeUndefined();
    await lease.release();
    await (await waiting).release();
    expect(await resume()).toEqual({ outcome: "not-paused" });
  });

  test("a waiter is granted after both the lease and the pause expire, with a higher token", () =>
    withLeaseInTime(async (leaseMs) => {
      const lease = await scene.lock.acquire({ leaseMs, renew: false, waitMs: LONG_MS });
      const waiting = scene.rival.acquire({ waitMs: LONG_MS });
      waiting.catch(() => {});
      try {
        await until(async () => {
          lease.assertHeld();
          return (await scene.lock.inspect()).waiterCount === 1;
        }, "the rival to queue in time");
        const { pause: made, holders } = await pause(Date.now() + 2 * leaseMs);
        expect(holders.map(({ owner }) => owner)).toEqual([lease.owner]);
        const next = await waiting;
        expect(Math.floor(next.token / 1_000)).toBeGreaterThanOrEqual(made.untilAtMs ?? Infinity);
        expect(next.token).toBeGreaterThan(lease.token);
      } finally {
        await resume();
        await (await waiting).release();
      }
    }));

  test("a second pause returns the first one and changes nothing", async () => {
    const { pause: first } = await pause();
    const again = await scene.holdfast.pause(scene.name, {
      kind,
      label: "mine",
      by: "cy",
      untilAtMs: Date.now() + 60_000,
    });
    expect(again).toMatchObject({ outcome: "already-paused", pause: first });
    expect((await scene.lock.inspect()).pause).toEqual(first);
    await resume();
    const lease = await scene.lock.acquire({ waitMs: 0 });
    await lease.release();
  });

  test("a pause and a resume each publish one event", async () => {
    const published: [string, unknown][] = [];
    const listeners = (["pause", "resume"] as const).map((name) => {
      const listener = (event: unknown): void => void published.push([name, event]);
      channels[name].subscribe(listener);
      return () => channels[name].unsubscribe(listener);
    });
    try {
      const { pause: made } = await pause();
      await pause();
      const resumed = await resume();
      await resume();
      const clientId: unknown = expect.any(String);
      const about = { kind, lockName: scene.name, owner: made.owner, clientId, pause: made };
      const { pausedForMs } = resumed as { pausedForMs?: number };
      expect(published).toEqual([
        ["pause", about],
        ["resume", { ...about, by: "ben", pausedForMs, waiterCount: 0 }],
      ]);
    } finally {
      for (const stop of listeners) stop();
    }
  });

  test("a pause that is resumed while the lock is held leaves no trace", async () => {
    const lease = await scene.lock.acquire();
    await pause();
    const waiting = scene.rival.acquire({ waitMs: LONG_MS, throughPause: true });
    await scene.queued(1);
    expect(await resume()).toMatchObject({ outcome: "resumed", waiterCount: 1 });
    expect((await scene.lock.inspect()).pause).toBeUndefined();
    lease.assertHeld();
    await lease.release();
    await (await waiting).release();
  });

  test("when a lease expires during a pause, no waiter is granted until the resume", () =>
    withLeaseInTime(async (leaseMs) => {
      const lease = await scene.lock.acquire({ leaseMs, renew: false, waitMs: LONG_MS });
      const waiting = scene.rival.acquire({ waitMs: LONG_MS });
      try {
        await until(async () => {
          lease.assertHeld();
          return (await scene.lock.inspect()).waiterCount === 1;
        }, "the rival to queue in time");
        const { holders } = await pause();
        expect(holders.map(({ owner }) => owner)).toEqual([lease.owner]);
        await until(async () => (await scene.lock.inspect()).holders.length === 0, "its lease to end");
        expect(await scene.lock.tryAcquire()).toBeNull();
        await expect(scene.lock.acquire({ waitMs: LONG_MS })).rejects.toThrow(PausedError);
        expect(await scene.lock.inspect()).toMatchObject({ holders: [], waiterCount: 1, pause: { by: BY } });
        expect(await resume()).toMatchObject({ outcome: "resumed", waiterCount: 1 });
        expect((await waiting).token).toBeGreaterThan(lease.token);
      } finally {
        await resume();
        await (await waiting).release();
      }
    }));

  test("a forced release during a pause ends the lease but not the pause", async () => {
    const lease = await scene.lock.acquire();
    await pause();
    expect(await scene.rival.forceRelease({ token: lease.token })).toBe(true);
    const { pause: standing, token } = await scene.lock.inspect();
    expect(standing?.by).toBe(BY);
    for (const old of [lease.token, token ?? 1]) expect(await scene.rival.forceRelease({ token: old })).toBe(false);
    expect(await scene.rival.forceRelease({ owner: standing?.owner ?? "" })).toBe(false);
    expect((await scene.lock.inspect()).pause).toEqual(standing);
    await resume();
    // The reason depends on whether the message about the forced release has already arrived.
    const end = await lease.release().catch((error: unknown) => error);
    expect(end).toBeInstanceOf(LeaseLostError);
    expect(["force-released", "server-lost"]).toContain((end as LeaseLostError).reason);
  });

  test("a client that already waits refuses new callers once it learns of the pause", async () => {
    const lease = await scene.rival.acquire();
    const before = scene.lock.acquire({ waitMs: 4 * LONG_MS });
    await scene.queued(1);
    await pause();
    // The waiting claim learns of the pause from its next re-check, within a few seconds.
    await until(async () => {
      const refused = await scene.lock.acquire({ waitMs: SHORT_MS }).catch((reason: unknown) => reason);
      return refused instanceof PausedError;
    }, "the client to learn of the pause");
    await lease.release();
    await resume();
    await (await before).release();
    await (await scene.lock.acquire()).release();
  });
}

function pauseBeside(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));
  const options = { label: LABEL, by: BY };

  test("a multi-lock with a paused member is refused and holds no other member", async () => {
    const names = [`{${scene.name}}a`, `{${scene.name}}b`, `{${scene.name}}c`] as const;
    await scene.holdfast.pause(names[1], options);
    const multi = scene.holdfast.multiLock(names);
    const error: unknown = await multi.acquire({ waitMs: LONG_MS }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PausedError);
    expect(error).toMatchObject({ lockName: names[1], by: BY });
    await expect(multi.acquire({ waitMs: 0 })).rejects.toThrow(PausedError);
    expect(await multi.tryAcquire()).toBeNull();
    expect(await multi.inspect()).toMatchObject({ holders: [], pause: { by: BY } });
    const waiting = multi.acquire({ waitMs: LONG_MS, throughPause: true });
    await until(async () => (await scene.holdfast.mutex(names[1]).inspect()).waiterCount === 1, "the wait");
    await scene.holdfast.resume(names[1], { by: BY });
    await (await waiting).release();
  });

  test("a paused semaphore grants neither free permits nor those that a resize adds", async () => {
    const semaphore = (holdfast: Holdfast) => holdfast.semaphore(scene.name, { permits: 3 });
    const held = [await semaphore(scene.holdfast).acquire(), await semaphore(scene.rivalHoldfast).acquire()];
    const paused = await scene.holdfast.pause(scene.name, { ...options, kind: "semaphore" });
    expect(paused.holders).toHaveLength(2);
    expect(await semaphore(scene.holdfast).tryAcquire()).toBeNull();
    expect(await semaphore(scene.holdfast).inspect()).toMatchObject({ capacity: 3, used: 2, pause: { by: BY } });
    await held[0]?.release();
    expect(await semaphore(scene.rivalHoldfast).tryAcquire()).toBeNull();
    await held[1]?.release();
    expect(await semaphore(scene.rivalHoldfast).tryAcquire()).toBeNull();
    await semaphore(scene.holdfast).resize(8);
    expect(await semaphore(scene.holdfast).tryAcquire()).toBeNull();
    expect(await semaphore(scene.holdfast).inspect()).toMatchObject({ capacity: 8, used: 0, holders: [] });
    const waiting = [1, 2, 3].map(() =>
      semaphore(scene.rivalHoldfast).acquire({ waitMs: LONG_MS, throughPause: true }),
    );
    await until(async () => (await semaphore(scene.holdfast).inspect()).waiterCount === 3, "three to wait");
    expect(await scene.holdfast.resume(scene.name, { by: BY, kind: "semaphore" })).toMatchObject({ waiterCount: 3 });
    const leases = await Promise.all(waiting);
    expect(leases.flatMap(({ slots }) => slots).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("readers keep their leases during a pause, and no other reader is granted", async () => {
    const lock = scene.holdfast.readWriteLock(scene.name);
    const reader = await lock.read.acquire();
    const { holders } = await scene.holdfast.pause(scene.name, { ...options, kind: "read-write-lock" });
    expect(holders.map(({ owner }) => owner)).toEqual([reader.owner]);
    await expect(scene.rivalHoldfast.readWriteLock(scene.name).read.acquire()).rejects.toThrow(PausedError);
    await reader.release();
    expect(await lock.read.tryAcquire()).toBeNull();
    await scene.holdfast.resume(scene.name, { by: BY, kind: "read-write-lock" });
    await (await lock.read.acquire({ waitMs: 0 })).release();
  });

  test("a paused election keeps its leader and elects no other until it is resumed", async () => {
    const [here, there] = [scene.holdfast.election(scene.name), scene.rivalHoldfast.election(scene.name)];
    const leadership = await here.campaign("one");
    await scene.holdfast.pause(scene.name, { ...options, kind: "election" });
    const standing = there.campaign("two", { waitMs: LONG_MS, throughPause: true });
    await until(async () => (await here.inspect()).waiterCount === 1, "a candidate");
    expect(await here.leader()).toMatchObject({ value: "one" });
    await here.resign(leadership);
    expect(await here.leader()).toBeNull();
    await scene.holdfast.resume(scene.name, { by: BY, kind: "election" });
    const next = await standing;
    expect(await here.leader()).toMatchObject({ value: "two", term: next.term });
    await there.resign(next);
  });

  test("a pause of a mutex with a mapped key does not stop clients that use SET NX PX", async () => {
    const key = `legacy:${scene.name}`;
    await scene.holdfast.pause(scene.name, { ...options, key });
    const mutex = scene.rivalHoldfast.mutex(scene.name, { key });
    await expect(mutex.acquire()).rejects.toThrow(PausedError);
    expect(await scene.server.setNx(key, "foreign", LONG_MS)).toBe(true);
    expect(await mutex.inspect()).toMatchObject({ holders: [{ owner: "foreign" }], pause: { by: BY } });
    await (await scene.rivalHoldfast.mutex(scene.name).acquire({ waitMs: 0 })).release();
    expect(await scene.holdfast.resume(scene.name, { by: BY, key })).toMatchObject({ outcome: "resumed" });
    expect(await mutex.forceRelease({ owner: "foreign" })).toBe(true);
    await (await mutex.acquire({ waitMs: 0 })).release();
  });

  test("a condition waiter that is signaled during a pause gets the mutex after it", async () => {
    const [mutex, rival] = [scene.holdfast.mutex(scene.name), scene.rivalHoldfast.mutex(scene.name)];
    const waiting = mutex.condition("full").wait(await mutex.acquire(), { waitMs: LONG_MS });
    await until(async () => (await mutex.condition("full").inspect()).waiterCount === 1, "the wait");
    const lease = await rival.acquire();
    await scene.holdfast.pause(scene.name, options);
    expect(await rival.condition("full").signal(lease)).toBe(1);
    await lease.release();
    expect(await mutex.inspect()).toMatchObject({ holders: [], pause: { by: BY } });
    await scene.holdfast.resume(scene.name, { by: BY });
    await (await waiting).release();
  });

  test("invalid arguments of pause and resume are rejected", async () => {
    const wrong: readonly unknown[] = [
      undefined,
      {},
      { by: BY },
      { label: LABEL },
      { label: "", by: BY },
      { label: "x".repeat(257), by: BY },
      { ...options, kind: "barrier" },
      { ...options, kind: "election", key: "k" },
      { ...options, untilAtMs: "tomorrow" },
      { ...options, untilAtMs: 1.5 },
      { ...options, until: 1 },
    ];
    for (const one of wrong) {
      const refusal: unknown = await scene.holdfast.pause(scene.name, one as never).catch((reason: unknown) => reason);
      expect(refusal instanceof TypeError || refusal instanceof RangeError, JSON.stringify(one)).toBe(true);
    }
    await expect(scene.holdfast.resume(scene.name, {} as never)).rejects.toThrow(TypeError);
    expect((await scene.lock.inspect()).pause).toBeUndefined();
  });
}
