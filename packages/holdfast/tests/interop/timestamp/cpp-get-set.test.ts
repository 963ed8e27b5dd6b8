/** The C++ lock with SETNX and GETSET, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { expect, test, vi } from "vitest";
import { cppGetSet, ForeignValueError } from "../../../src/interop/timestamp/index.js";
import { COMMON, valueIsReadByThem } from "./common-rows.js";
import { cppGetSetPeer, cppGetSetPeerOf } from "./peers.js";
import {
  clockAhead,
  endOf,
  eventually,
  expired,
  ghost,
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

const scene = useScene(cppGetSet, cppGetSetPeer);

/** The rows of docs/interop.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", says: "whatever parses whole seconds reads what we write", play: valueIsReadByThem },
  {
    id: "D1",
    says: "a holder that crashed leaves a key for ever; ours expires, after its value",
    play: keyHasAnExpiry,
  },
  {
    id: "D2",
    says: "they leave a lock behind that nobody holds; we wait for its end, and say that no owner is known",
    play: ghost,
  },
  {
    id: "D3",
    says: "whoever comes too late overwrites the winner's time; we put ours right",
    play: overwrittenByALoser,
  },
  { id: "D3 ours", says: "we write nothing when we lose", play: nothingWrittenOnALoss },
  { id: "D3 release", says: "or leave it, or delete it, when we release", play: overwrittenAtRelease },
  {
    id: "D4",
    says: "their late release deletes our lock: we are told, and none of ours goes in",
    play: theirLateReleaseIsALoss,
  },
  { id: "D4 ours", says: "our late release deletes nothing of theirs", play: ourLateReleaseDeletesNothing },
  {
    id: "D5",
    says: "a key that goes between their SETNX and GET is a failure for them; we cannot come between",
    async play() {
      await scene.peer().tryLock();
      const get = vi.spyOn(scene.redis, "get").mockImplementationOnce(async () => {
        await scene.redis.del(scene.key);
        return null;
      });
      expect(await scene.peer().tryLock()).toBe(false);
      expect(get).toHaveBeenCalledOnce();
      get.mockRestore();
      await (await scene.lock().acquire()).release();
    },
  },
  {
    id: "D6",
    says: "a clock that is ahead by more than the lease takes live locks; our holder is told, and so is who looks",
    play: clockAhead,
  },
  { id: "D7", says: "two of one second write one value; ours are told apart by the record", play: sameMoment },
  {
    id: "D8",
    says: "whichever way equal times are read: what we rely on is over before, and we take over after",
    async play() {
      for (const isOver of [
        (ends: number, nowS: number) => ends < nowS,
        (ends: number, nowS: number) => ends <= nowS,
      ]) {
        const peer = cppGetSetPeerOf(isOver);
        const lease = await scene.lock().acquire({ renew: false });
        const endsAtMs = endOf(scene, await scene.redis.get(scene.key));
        expect((await scene.nowMs()) + lease.validForMs()).toBeLessThan(endsAtMs - 1_000);
        expect(await peer(scene.redis, scene.key, { atMs: endsAtMs - 1_000 }).tryLock()).toBe(false);
        await lease.release();
        const nowS = Math.floor((await scene.nowMs()) / 1_000);
        await scene.redis.set(scene.key, nowS);
        const ours = await scene.lock().tryAcquire();
        // Holdfast does not take over within the same second. The check is skipped if that second has passed.
        if (Math.floor((await scene.nowMs()) / 1_000) === nowS) expect(ours).toBeNull();
        await ours?.release();
        await expired(scene, 2_000);
        await (await scene.lock().acquire()).release();
      }
    },
  },
  {
    id: "D9",
    says: "work that takes longer than the lease is renewed, or told before the value is over",
    play: longWork,
  },
  {
    id: "digits",
    says: "we write whole seconds without a mark, and refuse what is none",
    async play() {
      await scene.lock().acquire();
      expect(await scene.redis.get(scene.key)).toMatch(/^\d{10}$/);
      await scene.redis.set(scene.key, `${Date.now()}`);
      await expect(scene.lock({}, "second").tryAcquire()).rejects.toBeInstanceOf(ForeignValueError);
    },
  },
];

test.each(ROWS)("$id: $says", { timeout: eventually.timeout * 2 }, (row) => row.play(scene));
