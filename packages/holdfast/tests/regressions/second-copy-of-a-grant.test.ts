/** A grant message may come twice. The second copy may arrive during the release, or long after it. */
import { expect, test } from "vitest";
import { Answer, NOW_US, ScriptedLock } from "../unit/scripted-lock.js";

/** A lock whose claim has queued and was granted by a message. */
async function granted(takesTurns: boolean): Promise<{
  world: ScriptedLock;
  lease: Awaited<ReturnType<ScriptedLock["lock"]["acquire"]>>;
  message: string;
}> {
  const world = new ScriptedLock({ takesTurns });
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US,
  });
  const acquiring = world.lock.acquire({ waitMs: Infinity });
  await world.runtime.advance(100);
  const message = `+${world.lastNumber} 7 ${NOW_US + 100_000}`;
  world.store.push(message);
  return { world, lease: await acquiring, message };
}

test.each([false, true])(
  "a second copy of a grant during the release does not release the lock early (in a cohort: %s)",
  async (takesTurns) => {
    const { world, lease, message } = await granted(takesTurns);
    const answer = new Answer<"released">();
    world.answers.release = () => answer.promise;
    const releasing = lease.release();
    world.store.push(message);
    await world.runtime.advance(10);
    expect(world.sentOf("leave")).toEqual([]);
    answer.resolve("released");
    expect(await releasing).toBe("released");
  },
);

test("a later grant to a released claim is passed on", async () => {
  const { world, lease } = await granted(false);
  await lease.release();
  world.store.push(`+${world.lastNumber} 9 ${NOW_US + 200_000}`);
  await world.runtime.advance(10);
  expect(world.sentOf("leave")).toHaveLength(1);
});

test("a late second grant to a request that the client sent twice is passed on", async () => {
  const world = new ScriptedLock();
  const answer = new Answer<{ outcome: "granted"; token: number }>();
  world.answers.acquire = () => answer.promise;
  const acquiring = world.lock.acquire();
  await world.runtime.advance(10);
  world.store.reconnect("commands");
  answer.resolve({ outcome: "granted", token: 7 });
  await (await acquiring).release();
  expect(world.sentOf("leave")).toEqual([]);
  world.store.push(`+${world.lastNumber} 9 ${NOW_US + 200_000}`);
  await world.runtime.advance(10);
  expect(world.sentOf("leave")).toHaveLength(1);
});
