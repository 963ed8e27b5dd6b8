/** J33: two masters at the same time. One was replaced by the other and does not know it. */

import type { Injection } from "../injection.js";
import { PATIENCE_MS } from "../judging/grounds.js";
import type { Client, ServerHandle, Stage } from "../stage.js";
import { letGo, takeAll, tryAfter } from "./directed.js";
import { replicasOf } from "./failover.js";
import { strikeOver } from "./striking.js";

/** Two clients, one on each side of a split. Clients with even indexes stay with the old master. */
function onBothSides(stage: Stage): readonly [Client, Client] {
  const [old, next] = [stage.clients[0], stage.clients[1]];
  if (old === undefined || next === undefined) throw new Error("a split needs two clients");
  return [old, next];
}

async function written(server: ServerHandle, lockKey: string): Promise<boolean> {
  return Number(await server.command("EXISTS", lockKey)) > 0;
}

/** Ends the split, and waits until all clients of the other master have been disconnected. */
async function healed(stage: Stage): Promise<void> {
  await replicasOf(stage).heal();
  await Promise.all(
    stage.clients.map(async (client) => {
      const taken = await client.take({ lockName: stage.newName(), leaseMs: stage.leaseMs, waitMs: 2 * PATIENCE_MS });
      if (taken !== undefined) await client.release(taken.leaseId);
    }),
  );
}

/** A split and its end take ten seconds, and sometimes the second client does not find its master in time. */
const SPLITS_FOR_MS = 25_000;

/** J33: two masters with separate clients. */
export const twoMasters: Injection = {
  row: "J33",
  leastMs: SPLITS_FOR_MS,
  servers: { hasTwoSides: true },
  async strike(stage) {
    const controls = replicasOf(stage);
    const lockName = stage.newName();
    // With the grace on, the second client waits until the new master's quiet time ends, and the first one renews
    // meanwhile.
    const leaseMs = 3 * stage.leaseMs;
    const [first, second] = onBothSides(stage);
    const beganMs = stage.nowMs();
    const old = await controls.master();
    const next = await controls.split();
    const held = await takeAll(stage, first, lockName, leaseMs, true);
    const taken = await tryAfter(stage, second, lockName, leaseMs, 2 * leaseMs);
    const key = stage.keyPrefix(lockName);
    const areBoth = (await written(old, key)) && (await written(next, key));
    await letGo(held, taken);
    strikeOver(stage, "J33", old.name, beganMs, areBoth ? `${old.name} and ${next.name} both have ${key}` : null);
    await healed(stage);
  },
};

const AHEAD_MS = 10_000;

/** J33 and J29 on tokens: the old master issues higher tokens, because its clock is ahead. */
export const twoMastersAhead: Injection = {
  row: "J33-ahead",
  needsClockShim: true,
  servers: { hasTwoSides: true },
  async strike(stage) {
    const controls = replicasOf(stage);
    const lockName = stage.newName();
    const [first, second] = onBothSides(stage);
    const beganMs = stage.nowMs();
    const old = await controls.master();
    old.stepClock(AHEAD_MS);
    const next = await controls.split();
    for (const client of [first, second, first, second]) {
      const taken = await client.take({ lockName, leaseMs: stage.leaseMs, waitMs: 4 * stage.leaseMs });
      if (taken !== undefined) await client.release(taken.leaseId);
    }
    strikeOver(stage, "J33", old.name, beganMs, `${old.name} is ${AHEAD_MS} ms ahead of ${next.name}, and both serve`);
    old.stepClock(0);
    await healed(stage);
  },
};
