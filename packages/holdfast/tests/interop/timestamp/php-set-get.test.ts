/** The PHP lock with SETNX and SET … GET, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { describe, expect, test } from "vitest";
import * as scripts from "../../../src/generated/timestamp-scripts.js";
import { ForeignValueError, phpSetGet } from "../../../src/interop/timestamp/index.js";
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

/** The rows of docs/interop.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", says: "the int cast reads what we write", play: valueIsReadByThem },
  {
    id: "A1",
    says: "a holder that crashed leaves a key for ever; ours expires, after its value",
    play: keyHasAnExpiry,
  },
  {
    id: "A2",
    says: "in the second of expiry a waiter of theirs puts it off and loses; we take it then, and write nothing when we lose",
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
    says: "whoever comes too late overwrites the winner's time; we put ours right",
    play: overwrittenByALoser,
  },
  { id: "A3 release", says: "or leave it, or delete it, when we release", play: overwrittenAtRelease },
  {
    id: "A4",
    says: "their late release deletes our lock: we are told, and none of ours goes in",
    play: theirLateReleaseIsALoss,
  },
  { id: "A4 ours", says: "our late release deletes nothing of theirs", play: ourLateReleaseDeletesNothing },
  {
    id: "A5",
    says: "a clock that is ahead by more than the lease takes live locks; our holder is told, and so is who looks",
    play: clockAhead,
  },
  { id: "A6", says: "two of one second write one value; ours are told apart by the record", play: sameMoment },
  {
    id: "A6 fraction",
    says: "and by six digits that the cast cuts off",
    async play() {
      await scene.lock().acquire();
      expect(await scene.redis.get(scene.key)).toMatch(/^\d{10}\.\d{6}$/);
    },
  },
  {
    id: "A7",
    says: "work that takes longer than the lease is renewed, or told before the value is over",
    play: longWork,
  },
  {
    id: "A8",
    says: "they take over what is no number; we refuse it, and a number of another unit, and write neither",
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
    says: "a waiter of theirs overwrites us, if its predecessor left and we came in between; we put it right when we renew",
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
    says: "SET … GET needs Redis 6.2; no script of ours uses it",
    async play() {
      for (const { source } of Object.values(scripts)) expect(source).not.toMatch(/'SET',[^\n]*'GET'/);
    },
  },
];

describe(phpSetGet.prefix, () => {
  test.each(ROWS)("$id: $says", (row) => row.play(scene));
});
