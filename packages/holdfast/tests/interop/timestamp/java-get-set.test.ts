/** The Java lock with SETNX and GETSET, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { startProxy } from "../../../../../tests/support/tcp-proxy.js";
import { AcquireTimeoutError, createHoldfast } from "../../../src/index.js";
import { ForeignValueError, javaGetSet, timestampLock } from "../../../src/interop/timestamp/index.js";
import { COMMON, valueIsReadByThem } from "./common-rows.js";
import { javaGetSetPeer } from "./peers.js";
import {
  clockAhead,
  endOf,
  eventually,
  expired,
  ghost,
  keyHasAnExpiry,
  longWork,
  NEVER_MS,
  nothingWrittenOnALoss,
  ourLateReleaseDeletesNothing,
  overwrittenAtRelease,
  overwrittenByALoser,
  sameMoment,
  theirLateReleaseIsALoss,
} from "./rows.js";
import { type Row, useScene } from "./scene.js";

const scene = useScene(javaGetSet, javaGetSetPeer);

/** The rows of docs/interop.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", says: "parseLong reads what we write", play: valueIsReadByThem },
  {
    id: "C1",
    says: "a holder that crashed leaves a key for ever; ours expires, after its value",
    play: keyHasAnExpiry,
  },
  {
    id: "C2",
    says: "whoever comes too late overwrites the winner's time; we put ours right",
    play: overwrittenByALoser,
  },
  { id: "C2 ours", says: "we write nothing when we lose", play: nothingWrittenOnALoss },
  { id: "C2 release", says: "or leave it, or delete it, when we release", play: overwrittenAtRelease },
  {
    id: "C3",
    says: "they leave a lock behind that nobody holds; we wait for its end, and say that no owner is known",
    play: ghost,
  },
  {
    id: "C4",
    says: "a waiter of theirs that was paused while another took over, and was over, loses and puts off the end; we wait for that",
    async play() {
      await expired(scene, 9_000);
      const paused = await scene.peer().tryLockUpToTakeover();
      const lease = await scene.lock().acquire();
      await lease.release();
      await expired(scene, 5_000);
      expect(await paused.finish()).toBe(false);
      expect(endOf(scene, await scene.redis.get(scene.key))).toBeGreaterThan(await scene.nowMs());
      expect(await scene.lock().tryAcquire()).toBeNull();
    },
  },
  {
    id: "C5",
    says: "their late release deletes our lock: we are told, and none of ours goes in",
    play: theirLateReleaseIsALoss,
  },
  { id: "C5 ours", says: "our late release deletes nothing of theirs", play: ourLateReleaseDeletesNothing },
  {
    id: "C6, C7",
    says: "threads of one object release each other's lock; here only the lease does, and nobody who waits is in its way",
    async play() {
      const object = scene.peer();
      expect(await object.tryLock()).toBe(true);
      expect(await object.tryLock()).toBe(false);
      // The unlock in its `finally` block.
      await object.unlock();
      expect(await scene.redis.exists(scene.key)).toBe(0);

      const lock = scene.lock();
      const lease = await lock.acquire();
      await expect(lock.acquire({ waitMs: 20 })).rejects.toBeInstanceOf(AcquireTimeoutError);
      expect(lease.validForMs()).toBeGreaterThan(0);
      const waiting = lock.acquire({ waitMs: NEVER_MS });
      expect(await lease.release()).toBe("released");
      await (await waiting).release();
    },
  },
  {
    id: "C8",
    says: "a client with another key serializer uses another key; a canary shows it before it matters",
    async play() {
      // The key as Java serialization encodes it.
      const elsewhere = `\u00ac\u00ed\u0000\u0005t\u0000${scene.key}`;
      const canary = timestampLock(scene.holdfast, scene.name, javaGetSet);
      await javaGetSetPeer(scene.redis, elsewhere).tryLock();
      expect((await canary.inspect()).holders).toEqual([]);
      await javaGetSetPeer(scene.redis, canary.key).tryLock();
      expect((await canary.inspect()).holders).toHaveLength(1);
      await scene.redis.del(elsewhere);
    },
  },
  {
    id: "C9",
    says: "their budget counts pauses; ours is time that has passed",
    async play() {
      await scene.peer().tryLock();
      const startedAtMs = performance.now();
      await expect(scene.lock().acquire({ waitMs: 120 })).rejects.toBeInstanceOf(AcquireTimeoutError);
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(119);
      await expect(scene.lock().acquire({ waitMs: 0 })).rejects.toBeInstanceOf(AcquireTimeoutError);
      await expect(scene.lock().acquire({ waitMs: -1 })).rejects.toBeInstanceOf(RangeError);
    },
  },
  {
    id: "C10",
    says: "a reply to SETNX that is lost leaves a lock that nobody holds; we ask again, and have it",
    async play() {
      const proxy = await startProxy(scene.server.port);
      const theirs = new Redis({ port: proxy.port, maxRetriesPerRequest: 0, retryStrategy: () => 10 });
      theirs.on("error", () => {});
      await theirs.ping();
      const cut = proxy.cutBeforeReply(/^setnx/i);
      // Its catch block treats the error as "busy".
      expect(
        await javaGetSetPeer(theirs, scene.key)
          .tryLock()
          .catch(() => false),
      ).toBe(false);
      await cut;
      expect(await scene.peer().tryLock()).toBe(false);
      await scene.redis.del(scene.key);
      theirs.disconnect();

      const redis = new Redis({ port: proxy.port, autoResendUnfulfilledCommands: false });
      redis.on("error", () => {});
      const holdfast = createHoldfast({ redis });
      const lock = timestampLock(holdfast, scene.name, javaGetSet);
      // Loads the script first, so that the cut hits the attempt.
      await (await lock.acquire()).release();
      const struck = proxy.cutBeforeReply((words) => words[0]?.toLowerCase() === "evalsha" && words[3] === scene.key);
      const lease = await lock.acquire();
      await struck;
      expect((await scene.lock({}, "second").inspect()).holders[0]?.owner).toBe(lease.owner);
      expect(await lease.release()).toBe("released");
      expect(await scene.redis.exists(scene.key)).toBe(0);
      await holdfast.close();
      redis.disconnect();
      await proxy.close();
    },
  },
  {
    id: "C11",
    says: "what parseLong cannot read is thrown out of their lock; we write digits alone, and refuse what is none or counts seconds",
    async play() {
      for (const value of ["1700000000000.5", "somebody", `${Math.floor(Date.now() / 1_000)}`]) {
        await scene.redis.set(scene.key, value);
        await expect(scene.lock().tryAcquire()).rejects.toBeInstanceOf(ForeignValueError);
        expect(await scene.redis.get(scene.key)).toBe(value);
      }
      await scene.redis.set(scene.key, "1700000000000.5");
      await expect(scene.peer().tryLock()).rejects.toThrow("NumberFormatException");
      await scene.redis.del(scene.key);
      await scene.lock().acquire();
      expect(await scene.redis.get(scene.key)).toMatch(/^0\d{13}$/);
    },
  },
  {
    id: "C12",
    says: "a clock that is ahead by more than the lease takes live locks; our holder is told, and so is who looks",
    play: clockAhead,
  },
  {
    id: "C13",
    says: "a value that is reached is busy, for them and for us",
    async play() {
      const atMs = Math.ceil(await scene.nowMs()) + 40;
      await scene.redis.set(scene.key, atMs);
      expect(await scene.peer({ atMs }).tryLock()).toBe(false);
      const lease = await scene.lock().acquire({ waitMs: NEVER_MS });
      const record = await scene.redis.get(`{${scene.key}}:holdfast:owner`);
      // The record holds the time of the takeover by the server's clock.
      expect(Number(record?.split(" ")[1])).toBeGreaterThan(atMs);
      await lease.release();
    },
  },
  { id: "C14", says: "two of one millisecond write one value; ours are told apart by the record", play: sameMoment },
  {
    id: "C15",
    says: "one that locks twice waits for itself and is refused; here the error says so",
    async play() {
      const lock = scene.lock();
      const lease = await lock.acquire();
      await expect(lock.acquire({ waitMs: 10 })).rejects.toMatchObject({ isOwn: true, holder: { owner: lease.owner } });
    },
  },
  {
    id: "C16",
    says: "pauses of one length keep those who wait in step; ours differ at random, and callers of one process are served in turn",
    async play() {
      const lock = scene.lock();
      const lease = await lock.acquire();
      const served: number[] = [];
      const waits = [0, 1, 2, 3].map(async (place) => {
        await lock.run(() => void served.push(place), { waitMs: NEVER_MS });
      });
      await lease.release();
      await Promise.all(waits);
      expect(served).toEqual([0, 1, 2, 3]);
    },
  },
  {
    id: "C17",
    says: "work that takes longer than the lease is renewed, or told before the value is over",
    play: longWork,
  },
];

test.each(ROWS)("$id: $says", { timeout: eventually.timeout * 2 }, (row) => row.play(scene));

test("a waiter pauses between a quarter of `retryDelayMs` and all of it", async () => {
  const { systemRuntime } = await import("../../../src/simulation.js");
  const { createHoldfastOn } = await import("../../../src/holdfast.js");
  const redis = new Redis({ port: scene.server.port });
  await scene.peer().tryLock();
  for (const [chance, leastMs, mostMs] of [
    [0, 800, 840],
    [0.999, 200, 240],
  ] as const) {
    const delays: number[] = [];
    const holdfast = createHoldfastOn(
      {
        ...systemRuntime,
        random: () => chance,
        startTimer: (callback, delayMs, keepAlive) => {
          if (keepAlive) delays.push(delayMs);
          return systemRuntime.startTimer(callback, keepAlive && delayMs < 1_000 ? 0 : delayMs, keepAlive);
        },
      },
      { redis },
    );
    const abort = new AbortController();
    const lock = timestampLock(holdfast, scene.name, javaGetSet, { retryDelayMs: 800, wake: false });
    const waiting = lock.acquire({ waitMs: Infinity, signal: abort.signal });
    const pauses = (): number[] => delays.filter((delayMs) => delayMs < 1_000 && delayMs >= 100);
    await vi.waitFor(() => expect(pauses().length).toBeGreaterThan(3), eventually);
    for (const delayMs of pauses().slice(0, 3)) {
      expect(delayMs).toBeGreaterThanOrEqual(leastMs);
      expect(delayMs).toBeLessThanOrEqual(mostMs);
    }
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await holdfast.close();
  }
  redis.disconnect();
});

test("a valid Holdfast lease keeps other Holdfast clients out, even if foreign clients replace the lock", async () => {
  const holder = await scene.lock({ leaseMs: 300_000 }).acquire({ renew: false });
  // Dates the grant 200 s back.
  const record = `{${scene.key}}:holdfast:owner`;
  const [value, , token, owner] = String(await scene.redis.get(record)).split(" ");
  const sinceMs = Math.round(await scene.nowMs()) - 200_000;
  await scene.redis.set(record, `${value} ${sinceMs} ${token} ${owner}`, "KEEPTTL");
  // A foreign client that overran deletes the lock, and another one takes it and crashes.
  await scene.redis.set(scene.key, String(Math.round(await scene.nowMs()) - 50));
  expect(await scene.lock().tryAcquire()).toBeNull();
  expect(holder.validForMs()).toBeGreaterThan(0);
  await holder.release().catch(() => {});
});

test("a late overwrite some time after a grant is corrected, even without renewal", async () => {
  const lease = await scene.lock({ leaseMs: 3_000 }).acquire({ renew: false });
  const ours = await scene.redis.get(scene.key);
  // The late client computed its value before the grant and writes it after the first check.
  await new Promise((resolve) => setTimeout(resolve, 150));
  await scene.redis.set(scene.key, String(Math.round(await scene.nowMs()) + 500));
  await vi.waitFor(async () => expect(await scene.redis.get(scene.key)).toBe(ours), eventually);
  expect(await lease.release()).toBe("released");
});
