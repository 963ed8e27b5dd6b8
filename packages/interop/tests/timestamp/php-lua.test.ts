/** The PHP lock with a Lua script, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { ForeignValueError, phpLua, timestampLock } from "../../src/timestamp/index.js";
import { COMMON, valueIsReadByThem } from "./common-rows.js";
import { phpLuaPeer } from "./peers.js";
import {
  clockAhead,
  endOf,
  eventually,
  expired,
  longWork,
  NEVER_MS,
  ourLateReleaseDeletesNothing,
  sameMoment,
} from "./rows.js";
import { type Row, useScene } from "./scene.js";

const scene = useScene(phpLua, phpLuaPeer);

/** Counts the script calls for the lock's key. */
async function asked(play: () => Promise<void>): Promise<number> {
  const monitor = await startMonitor(scene.server);
  await play();
  const sent = await monitor.sent();
  monitor.stop();
  return sent.filter(([command = "", , , key]) => command.startsWith("eval") && key === scene.key).length;
}

/** The rows of interop/coverage.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  { id: "value", title: "tonumber of Lua parses the values that Holdfast writes", play: valueIsReadByThem },
  {
    id: "B1",
    title:
      "a foreign release in time leaves the key until it expires; a Holdfast release frees the lock immediately, and a Holdfast waiter does not delete the foreign key",
    async play() {
      const theirs = scene.peer();
      await theirs.tryLock();
      await theirs.unlock();
      expect(await scene.redis.exists(scene.key)).toBe(1);
      expect(await scene.redis.pttl(scene.key)).toBeLessThanOrEqual(4_000);
      expect(await scene.lock().tryAcquire()).toBeNull();
      expect(await scene.redis.exists(scene.key)).toBe(1);
      // Shortens the rest of the four seconds.
      const waiting = scene.lock().acquire({ waitMs: NEVER_MS });
      await scene.redis.pexpire(scene.key, 60);
      const lease = await waiting;
      // The key has expired and was not taken over.
      expect(scene.told).toEqual([]);
      await lease.release();
      expect(await scene.peer().tryLock()).toBe(true);
    },
  },
  {
    id: "B2, B3",
    title: "the three foreign tries follow without a pause; Holdfast tries `attempts` times, with pauses",
    async play() {
      await scene.lock().acquire();
      expect(await asked(async () => void (await scene.peer().tryLock()))).toBe(3);
      const lock = scene.lock({ attempts: 3, retryDelayMs: 60, retryJitterMs: 0, wake: false }, "second");
      const startedAtMs = performance.now();
      const tries = await asked(() =>
        expect(lock.acquire({ waitMs: NEVER_MS })).rejects.toMatchObject({ code: "ERR_LOCK_ACQUIRE_TIMEOUT" }),
      );
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(2 * 60);
      // One more call looks up the holder for the error message.
      expect(tries).toBe(3 + 1);
    },
  },
  {
    id: "B4",
    title: "after a foreign takeover the value says 8 s and the expiry 4 s; Holdfast uses the earlier one",
    async play() {
      await expired(scene);
      expect(await scene.peer().tryLock()).toBe(true);
      const leftMs = endOf(scene, await scene.redis.get(scene.key)) - (await scene.nowMs());
      expect(leftMs).toBeGreaterThan(6_000);
      expect(await scene.redis.pttl(scene.key)).toBeLessThanOrEqual(4_000);
      const { holders } = await scene.lock().inspect();
      expect(holders[0]?.leaseLeftMs).toBeLessThanOrEqual(4_000);
      const waiting = scene.lock().acquire({ waitMs: NEVER_MS });
      await scene.redis.pexpire(scene.key, 60);
      await (await waiting).release();

      await scene.lock().acquire();
      const ends = endOf(scene, await scene.redis.get(scene.key)) - (await scene.nowMs());
      expect(await scene.redis.pttl(scene.key)).toBeGreaterThan(ends);
    },
  },
  {
    id: "B5",
    title:
      "a value that is not a number is an error in the foreign script; Holdfast refuses it with a named error, and writes only numbers",
    async play() {
      await scene.redis.set(scene.key, "somebody");
      await expect(scene.peer().tryLock()).rejects.toThrow();
      await expect(scene.lock().tryAcquire()).rejects.toBeInstanceOf(ForeignValueError);
      expect(await scene.redis.get(scene.key)).toBe("somebody");
    },
  },
  {
    id: "B6",
    title:
      "a foreign client whose clock is ahead by more than the lease takes live locks; the Holdfast holder is notified, and inspect reports it",
    play: clockAhead,
  },
  {
    id: "B7",
    title: "when its time is reached any client may take over or delete the lock; the Holdfast lease is over by then",
    async play() {
      const theirs = scene.peer();
      await theirs.tryLock();
      const atMs = endOf(scene, await scene.redis.get(scene.key));
      await scene.peer({ atMs }).unlock();
      expect(await scene.redis.exists(scene.key)).toBe(0);

      const lease = await scene.lock().acquire();
      const endsAtMs = endOf(scene, await scene.redis.get(scene.key));
      expect((await scene.nowMs()) + lease.validForMs()).toBeLessThan(endsAtMs - 1_000);
    },
  },
  {
    id: "B8",
    title: "the lease of long work is renewed, or its holder is notified before the value is over",
    play: longWork,
  },
  {
    id: "B9",
    title: "two foreign clients write the same value in one second; the record distinguishes Holdfast holders",
    play: sameMoment,
  },
  {
    id: "B10",
    title: "a key with a hash tag and one without are two locks; a Holdfast lock shows its key",
    async play() {
      const tagged = { ...phpLua, prefix: "{lock_goods}:" };
      const lock = timestampLock(scene.holdfast, "300", tagged);
      const plain = timestampLock(scene.holdfast, "lock_goods:300", phpLua);
      expect([lock.key, plain.key]).toEqual(["{lock_goods}:300", "lock_goods:300"]);
      const [one, other] = [await lock.acquire(), await plain.acquire()];
      expect(await scene.redis.exists("{lock_goods}:300", "lock_goods:300")).toBe(2);
      expect(await scene.redis.keys("*owner")).toEqual(
        expect.arrayContaining(["{lock_goods}:300:holdfast-tag:owner", "{lock_goods:300}:holdfast:owner"]),
      );
      await Promise.all([one.release(), other.release()]);
    },
  },
  {
    id: "B12",
    title: "a foreign release deletes any expired value; a Holdfast release deletes only its own",
    async play() {
      await expired(scene);
      await scene.peer().unlock();
      expect(await scene.redis.exists(scene.key)).toBe(0);
      await ourLateReleaseDeletesNothing(scene);
    },
  },
];

test.each(ROWS.map((row) => [row.id, row.title, row] as const))(
  "%s: %s",
  { timeout: eventually.timeout * 2 },
  (_id, _title, row) => row.play(scene),
);
