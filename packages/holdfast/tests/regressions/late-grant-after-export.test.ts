/** A grant message may arrive on another connection after the reply with the same grant. */
import { expect, test } from "vitest";
import { NOW_US, ScriptedLock } from "../unit/scripted-lock.js";

async function exported(): Promise<{ world: ScriptedLock; number: number }> {
  const world = new ScriptedLock();
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US,
  });
  const acquiring = world.lock.acquire({ waitMs: Infinity });
  await world.runtime.advance(100);
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  world.store.reconnect("inbox");
  const lease = await acquiring;
  lease.export();
  return { world, number: world.lastNumber };
}

test("a late grant message does not release a lease that has been exported", async () => {
  const { world, number } = await exported();
  world.store.push(`+${number} 7 ${NOW_US + 100_000}`);
  await world.runtime.advance(10);
  expect(world.sentOf("leave")).toEqual([]);
});

test("a later grant to a claim whose lease was exported is passed on", async () => {
  const { world, number } = await exported();
  world.store.push(`+${number} 8 ${NOW_US + 100_000}`);
  await world.runtime.advance(10);
  expect(world.sentOf("leave")).toHaveLength(1);
});
