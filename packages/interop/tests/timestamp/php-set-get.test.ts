/** The PHP lock with SETNX and SET … GET, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { describe, expect, test } from "vitest";
import * as scripts from "../../src/generated/timestamp.js";
import { ForeignValueError, phpSetGet } from "../../src/timestamp/index.js";
import { COMMON, valueIsReadByThem } from "./common-rows.js";
import { phpSetGetPeer } from "./peers.js";
import {
  clockAhead,
  expired,
  keyHasAnExpiry,
  longWork,
  nothingWrittenOnALoss,
  ourLateReleaseDeletesNothing,
  overwrittenAtRelease,
  overwrittenByALoser,
  sameMoment,
  theirLateReleaseIsALoss,
} from "./rows.js";
import { type Row, useScene } from "./scene.js";

const scene = useScene(phpSetGet, phpSetGetPeer);

/** The rows of interop/coverage.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", title: "the int cast of PHP parses the values that Holdfast writes", play: valueIsReadByThem },
  {
    id: "A1",
    title:
      "a crashed foreign holder leaves a key without an expiry; the key of a Holdfast holder expires, but not before its value",
    play: keyHasAnExpiry,
  },
  {
    id: "A2",
    title:
      "in the second of expiry a foreign waiter postpones the expiry and still loses; Holdfast acquires the lock then, and writes nothing if it loses",
    async play() {
      const nowS = Math.floor((await scene.nowMs()) / 1_000);
      await scene.redis.set(scene.key, nowS);
      expect(await scene.peer({ atMs: nowS * 1_000 }).tryLock()).toBe(false);
      expect(await scene.redis.get(scene.key)).toBe(`${nowS + 30}`);
      // Each poll postpones the end again, so the lock is never taken over.
      expect(await scene.peer({ atMs: (nowS + 30) * 1_000 }).tryLock()).toBe(false);
      expect(await scene.redis.get(scene.key)).toBe(`${nowS + 60}`);

      await scene.redis.set(scene.key, Math.floor((await scene.nowMs()) / 1_000));
      const lease = await scene.lock().tryAcquire();
      expect(lease).not.toBeNull();
      await lease?.release();
      await nothingWrittenOnALoss(scene);
    },
  },
  {
    id: "A3",
    title: "a foreign client that loses overwrites the winner's time; Holdfast restores its own",
    play: overwrittenByALoser,
  },
  {
    id: "A3 release",
    title: "a release leaves or deletes an overwritten value, as the `overwritten` option says",
    play: overwrittenAtRelease,
  },
  {
    id: "A4",
    title:
      "a late foreign release deletes the lock of a Holdfast holder, which is notified, and no other Holdfast client is granted",
    play: theirLateReleaseIsALoss,
  },
  {
    id: "A4 ours",
    title: "a late Holdfast release does not delete a foreign lock",
    play: ourLateReleaseDeletesNothing,
  },
  {
    id: "A5",
    title:
      "a foreign client whose clock is ahead by more than the lease takes live locks; the Holdfast holder is notified, and inspect reports it",
    play: clockAhead,
  },
  {
    id: "A6",
    title: "two foreign clients write the same value in one second; the record distinguishes Holdfast holders",
    play: sameMoment,
  },
  {
    id: "A6 fraction",
    title: "six digits that the cast drops also distinguish Holdfast holders",
    async play() {
      await scene.lock().acquire();
      expect(await scene.redis.get(scene.key)).toMatch(/^\d{10}\.\d{6}$/);
    },
  },
  {
    id: "A7",
    title: "the lease of long work is renewed, or its holder is notified before the value is over",
    play: longWork,
  },
  {
    id: "A8",
    title:
      "foreign clients take over a value that is not a number; Holdfast refuses it, and a number in another unit, and writes neither",
    async play() {
      for (const value of ["somebody", "", "1e12", "-5", "0x10", `${Date.now()}`]) {
        await scene.redis.set(scene.key, value);
        const error: unknown = await scene
          .lock()
          .acquire()
          .catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(ForeignValueError);
        expect(error).toMatchObject({ code: "ERR_LOCK_FOREIGN_VALUE", key: scene.key, found: value });
        expect(await scene.redis.get(scene.key)).toBe(value);
        await expect(scene.lock().inspect()).rejects.toBeInstanceOf(ForeignValueError);
      }
      await scene.redis.del(scene.key);
      await scene.redis.hset(scene.key, "field", "1");
      await expect(scene.lock().tryAcquire()).rejects.toBeInstanceOf(ForeignValueError);
      await scene.redis.del(scene.key);
      await scene.redis.set(scene.key, "somebody");
      expect(await scene.peer().tryLock()).toBe(true);
    },
  },
  {
    id: "A9",
    title:
      "a foreign waiter overwrites the value if Holdfast acquired the lock in between; the next renewal restores it",
    async play() {
      await scene.peer().tryLock();
      await expired(scene);
      const waiter = await scene.peer().tryLockUpToTakeover();
      await scene.redis.del(scene.key);
      expect(await waiter.finish()).toBe(true);

      await expired(scene);
      const late = await scene.peer().tryLockUpToTakeover();
      await scene.redis.del(scene.key);
      const lease = await scene.lock().acquire();
      expect(await late.finish()).toBe(false);
      await lease.extend(phpSetGet.leaseMs);
      expect(scene.told).toMatchObject([{ what: "overwritten", owner: lease.owner }]);
      expect(await lease.release()).toBe("released");
      expect(await scene.redis.exists(scene.key)).toBe(0);
    },
  },
  {
    id: "A10",
    title: "SET … GET needs Redis 6.2, and no Holdfast script uses it",
    async play() {
      for (const { source } of Object.values(scripts)) expect(source).not.toMatch(/'SET',[^\n]*'GET'/);
    },
  },
];

describe(phpSetGet.prefix, () => {
  test.each(ROWS.map((row) => [row.id, row.title, row] as const))("%s: %s", (_id, _title, row) => row.play(scene));
});
