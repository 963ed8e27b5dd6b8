/** Behavior of a shared lock with every protocol, in both directions. */
import { expect, vi } from "vitest";
import { endOf, eventually, expired, NEVER_MS } from "./rows.js";
import type { Row, Scene } from "./scene.js";

/** Number of races for an expired lock. Runs with the real programs have more. */
const RACES = 60;
const ROUNDS = 25;

const EXPIRE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end";

/** Ends a hold of the other side, independently of its release function. */
async function ends(scene: Scene): Promise<void> {
  if (scene.dialect.unit === "none") await scene.redis.del(scene.key);
  else await expired(scene);
}

export const COMMON: readonly Row[] = [
  {
    id: "both ways",
    title: "a holder of either side keeps the other side out, and a release lets it in",
    async play(scene) {
      const lease = await scene.lock().acquire();
      expect(await scene.peer().tryLock()).toBe(false);
      expect(await lease.release()).toBe("released");
      expect(await scene.redis.exists(scene.key)).toBe(0);
      const theirs = scene.peer();
      expect(await theirs.tryLock()).toBe(true);
      expect(await scene.lock().tryAcquire()).toBeNull();
      const waiting = scene.lock().acquire({ waitMs: NEVER_MS });
      await ends(scene);
      const next = await waiting;
      expect(await scene.peer().tryLock()).toBe(false);
      await next.release();
    },
  },
  {
    id: "between us",
    title: "two Holdfast clients exclude and wake each other, and their tokens rise",
    async play(scene) {
      const slow = { retryDelayMs: 60_000, retryJitterMs: 0 };
      const first = await scene.lock(slow).acquire();
      const waiting = scene.lock(slow, "second").acquire({ waitMs: 4_500 });
      const channel = `hf:timestamp:${scene.key}`;
      await vi.waitFor(async () => expect((await scene.redis.pubsub("NUMSUB", channel))[1]).toBe(1), eventually);
      await first.release();
      const second = await waiting;
      expect(second.token).toBeGreaterThan(first.token);
      const { holders } = await scene.lock().inspect();
      expect(holders).toMatchObject([{ owner: second.owner, token: second.token }]);
      await second.release();
    },
  },
  {
    id: "force",
    title: "a holder of either side can be force-released by the owner that inspect shows",
    async play(scene) {
      const lease = await scene.lock().acquire();
      expect(await scene.lock({}, "second").forceRelease({ owner: "somebody else" })).toBe(false);
      expect(await scene.lock({}, "second").forceRelease({ token: lease.token })).toBe(true);
      await vi.waitFor(() => expect(lease.signal.aborted).toBe(true), eventually);
      // A message notifies the holder, unless its periodic check of the value finds the deletion first.
      expect(lease.signal.reason).toMatchObject({ reason: expect.stringMatching(/^(?:force-released|server-lost)$/) });
      expect(await scene.redis.exists(scene.key)).toBe(0);
      await scene.peer().tryLock();
      const [holder] = (await scene.lock().inspect()).holders;
      expect(await scene.lock().forceRelease({ owner: holder?.owner ?? "" })).toBe(true);
      expect(await scene.peer().tryLock()).toBe(true);
    },
  },
  {
    id: "race",
    title: "when both sides race for a free or expired lock, at most one wins",
    async play(scene) {
      const lock = scene.lock();
      for (let round = 0; round < RACES; round += 1) {
        if (round % 2 === 0 && scene.dialect.unit !== "none") await expired(scene);
        else await scene.redis.del(scene.key);
        const [theirs, ours] = await Promise.all([scene.peer().tryLock(), lock.tryAcquire()]);
        expect(theirs && ours !== null).toBe(false);
        await ours?.release();
        await scene.redis.del(scene.key);
      }
    },
  },
  {
    id: "counter",
    title: "a counter that both sides guard with the lock loses no update",
    async play(scene) {
      const { key } = scene;
      const counter = `${key}:counter`;
      const add = async (): Promise<void> => {
        const value = Number(await scene.redis.get(counter));
        await scene.redis.set(counter, value + 1);
      };
      const ours = async (which: "first" | "second"): Promise<void> => {
        // "delete" is safe because no client overruns its lease here. A late value would otherwise stay for a lease.
        const options = { retryDelayMs: 10, overwritten: "delete" } as const;
        for (let i = 0; i < ROUNDS; i += 1) await scene.lock(options, which).run(add, { waitMs: NEVER_MS });
      };
      const theirs = async (): Promise<void> => {
        for (let i = 0; i < ROUNDS; i += 1) {
          const peer = scene.peer();
          while (!(await peer.tryLock())) await new Promise((resolve) => setTimeout(resolve, 1));
          const value = await scene.redis.get(key);
          await add();
          await peer.unlock();
          // Some foreign releases leave the key until it expires, so delete it here.
          await scene.redis.eval(EXPIRE, 1, key, value ?? "");
        }
      };
      await Promise.all([ours("first"), ours("second"), theirs()]);
      expect(Number(await scene.redis.get(counter))).toBe(3 * ROUNDS);
    },
  },
];

/** Foreign lock functions parse the values that Holdfast writes and compare them correctly. */
export async function valueIsReadByThem(scene: Scene): Promise<void> {
  const lease = await scene.lock().acquire({ renew: false });
  const value = await scene.redis.get(scene.key);
  const unitMs = scene.dialect.unit === "s" ? 1_000 : 1;
  const endsAtMs = endOf(scene, value);
  // One time unit before the end of the value, and one after.
  expect(await scene.peer({ atMs: endsAtMs - unitMs }).tryLock()).toBe(false);
  expect(await scene.peer({ atMs: endsAtMs + unitMs }).tryLock()).toBe(true);
  await lease.release().catch(() => {});
}
