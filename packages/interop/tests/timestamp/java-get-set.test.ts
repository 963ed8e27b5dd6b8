/** The Java lock with SETNX and GETSET, row by row: its own defects, and its effects on Holdfast and vice versa. */

import { AcquireTimeoutError, createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { startProxy } from "../../../../tests/support/tcp-proxy.js";
import { ForeignValueError, javaGetSet, timestampLock } from "../../src/timestamp/index.js";
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

/** The rows of interop/coverage.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", title: "parseLong of Java parses the values that Holdfast writes", play: valueIsReadByThem },
  {
    id: "C1",
    title:
      "a crashed foreign holder leaves a key without an expiry; the key of a Holdfast holder expires, but not before its value",
    play: keyHasAnExpiry,
  },
  {
    id: "C2",
    title: "a foreign client that loses overwrites the winner's time; Holdfast restores its own",
    play: overwrittenByALoser,
  },
  { id: "C2 ours", title: "a Holdfast client that loses writes nothing", play: nothingWrittenOnALoss },
  {
    id: "C2 release",
    title: "a release leaves or deletes an overwritten value, as the `overwritten` option says",
    play: overwrittenAtRelease,
  },
  {
    id: "C3",
    title:
      "a foreign client can leave a lock without a holder; Holdfast waits for its end and reports an unknown owner",
    play: ghost,
  },
  {
    id: "C4",
    title:
      "a foreign waiter that was paused during another takeover loses and postpones the end; Holdfast waits for the new end",
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
    title:
      "a late foreign release deletes the lock of a Holdfast holder, which is notified, and no other Holdfast client is granted",
    play: theirLateReleaseIsALoss,
  },
  {
    id: "C5 ours",
    title: "a late Holdfast release does not delete a foreign lock",
    play: ourLateReleaseDeletesNothing,
  },
  {
    id: "C6, C7",
    title:
      "threads that share a foreign lock object release each other's lock; in Holdfast only the lease can release, and no waiter delays it",
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
    title: "a client with another key serializer uses another key; a canary key reveals this in advance",
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
    title: "the foreign wait limit counts pauses; the Holdfast limit is elapsed time",
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
    title: "a lost reply to SETNX leaves a lock without a holder; Holdfast repeats the request and gets the lock",
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
    title:
      "the foreign lock throws on a value that parseLong cannot parse; Holdfast writes only digits, and refuses other text and seconds",
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
    title:
      "a foreign client whose clock is ahead by more than the lease takes live locks; the Holdfast holder is notified, and inspect reports it",
    play: clockAhead,
  },
  {
    id: "C13",
    title: "a lock is still held at the exact time of its value, for foreign clients and for Holdfast",
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
  {
    id: "C14",
    title: "two foreign clients write the same value in one millisecond; the record distinguishes Holdfast holders",
    play: sameMoment,
  },
  {
    id: "C15",
    title: "a caller that locks twice waits for itself and is refused; the Holdfast error says so",
    async play() {
      const lock = scene.lock();
      const lease = await lock.acquire();
      await expect(lock.acquire({ waitMs: 10 })).rejects.toMatchObject({ isOwn: true, holder: { owner: lease.owner } });
    },
  },
  {
    id: "C16",
    title:
      "pauses of equal length keep foreign waiters in step; Holdfast pauses are random, and callers of one process are served in turn",
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
    title: "the lease of long work is renewed, or its holder is notified before the value is over",
    play: longWork,
  },
];

test.each(ROWS.map((row) => [row.id, row.title, row] as const))(
  "%s: %s",
  { timeout: eventually.timeout * 2 },
  (_id, _title, row) => row.play(scene),
);

test("a waiter pauses between a quarter of `retryDelayMs` and all of it", async () => {
  const { systemRuntime } = await import("holdfast/simulation");
  const { createHoldfastOn } = await import("../../../holdfast/src/holdfast.js");
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
