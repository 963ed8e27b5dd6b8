/** The C++ lock with SETNX and GETSET, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { expect, test, vi } from "vitest";
import { cppGetSet, ForeignValueError } from "../../src/timestamp/index.js";
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

/** The rows of interop/coverage.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", title: "any parser of whole seconds parses the values that Holdfast writes", play: valueIsReadByThem },
  {
    id: "D1",
    title:
      "a crashed foreign holder leaves a key without an expiry; the key of a Holdfast holder expires, but not before its value",
    play: keyHasAnExpiry,
  },
  {
    id: "D2",
    title:
      "a foreign client can leave a lock without a holder; Holdfast waits for its end and reports an unknown owner",
    play: ghost,
  },
  {
    id: "D3",
    title: "a foreign client that loses overwrites the winner's time; Holdfast restores its own",
    play: overwrittenByALoser,
  },
  { id: "D3 ours", title: "a Holdfast client that loses writes nothing", play: nothingWrittenOnALoss },
  {
    id: "D3 release",
    title: "a release leaves or deletes an overwritten value, as the `overwritten` option says",
    play: overwrittenAtRelease,
  },
  {
    id: "D4",
    title:
      "a late foreign release deletes the lock of a Holdfast holder, which is notified, and no other Holdfast client is granted",
    play: theirLateReleaseIsALoss,
  },
  {
    id: "D4 ours",
    title: "a late Holdfast release does not delete a foreign lock",
    play: ourLateReleaseDeletesNothing,
  },
  {
    id: "D5",
    title:
      "a key that vanishes between SETNX and GET makes a foreign client fail; Holdfast checks and writes in one step",
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
    title:
      "a foreign client whose clock is ahead by more than the lease takes live locks; the Holdfast holder is notified, and inspect reports it",
    play: clockAhead,
  },
  {
    id: "D7",
    title: "two foreign clients write the same value in one second; the record distinguishes Holdfast holders",
    play: sameMoment,
  },
  {
    id: "D8",
    title:
      "however a client treats equal times, a Holdfast lease ends before its value, and Holdfast takes over only after it",
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
    title: "the lease of long work is renewed, or its holder is notified before the value is over",
    play: longWork,
  },
  {
    id: "digits",
    title: "Holdfast writes whole seconds without a mark and refuses any other value",
    async play() {
      await scene.lock().acquire();
      expect(await scene.redis.get(scene.key)).toMatch(/^\d{10}$/);
      await scene.redis.set(scene.key, `${Date.now()}`);
      await expect(scene.lock({}, "second").tryAcquire()).rejects.toBeInstanceOf(ForeignValueError);
    },
  },
];

test.each(ROWS.map((row) => [row.id, row.title, row] as const))(
  "%s: %s",
  { timeout: eventually.timeout * 2 },
  (_id, _title, row) => row.play(scene),
);
