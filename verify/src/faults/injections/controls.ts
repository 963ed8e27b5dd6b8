/** Rows about tokens and effects: the same fault with and without the protection against it. */

import type { Injection } from "../injection.js";
import type { Stage } from "../stage.js";
import { letGo, takeAll, tryAfter, twoClients } from "./directed.js";
import { allForget, FORGETFUL } from "./durability.js";
import { repeatToken } from "./operator.js";
import { contention, freezeFor, strikeOver } from "./striking.js";

/** J25 on tokens, as a control: the counter restarts at 1. */
export const plainCounterForgotten: Injection = {
  row: "J25-plain",
  servers: FORGETFUL,
  mutations: ["plain-counter"],
  strike: (stage) => repeatToken(stage, () => allForget(stage)),
};

/** J25 on tokens: leases may overlap, but tokens must still rise. */
export const seededCounterForgotten: Injection = {
  row: "J25-seeded",
  servers: FORGETFUL,
  work: contention,
  async strike(stage) {
    if (stage.random.chance(0.5)) await allForget(stage);
    else await repeatToken(stage, () => allForget(stage));
  },
};

/**
 * A client holds and writes, freezes for longer than its lease, and writes again without a check; meanwhile another
 * client is granted the lock and writes.
 */
async function staleWrite(stage: Stage, isFenced: boolean): Promise<void> {
  const { leaseMs } = stage;
  const lockName = stage.newName();
  const [first, second] = twoClients(stage);
  const stale = await takeAll(stage, first, lockName, leaseMs);
  const [lease] = stale.taken;
  if (lease === undefined) return;
  await first.write(lease.leaseId, isFenced);
  const beganMs = stage.nowMs();
  const frozen = freezeFor(stage, first, stage.random.between(1.5, 3) * leaseMs);
  const after = await tryAfter(stage, second, lockName, 10 * leaseMs);
  for (const { leaseId } of after.taken) await second.write(leaseId, isFenced);
  strikeOver(stage, "J01", first.name, beganMs, await frozen);
  await first.write(lease.leaseId, isFenced);
  for (const { leaseId } of after.taken) await second.write(leaseId, isFenced);
  await letGo(stale, after);
}

/** J01 on effects, as a control: the resource accepts every write. */
export const unfencedEffects: Injection = {
  row: "J01-unfenced",
  strike: (stage) => staleWrite(stage, false),
};

/** J01 on effects: the resource checks tokens. */
export const fencedEffects: Injection = {
  row: "J01-fenced",
  work: (stage) => ({ ...contention(stage), effects: "fenced" }),
  async strike(stage) {
    if (stage.random.chance(0.5)) {
      await staleWrite(stage, true);
      return;
    }
    const client = stage.random.pick(stage.clients);
    const beganMs = stage.nowMs();
    strikeOver(
      stage,
      "J01",
      client.name,
      beganMs,
      await freezeFor(stage, client, stage.random.between(1, 3) * stage.leaseMs),
    );
  },
};
