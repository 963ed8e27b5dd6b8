/** J31 to J34, and what they do to tokens and effects: another server takes over, with or without all that was granted. */

import type { Injection } from "../injection.js";
import type { Client, ReplicaControls, ServerHandle, Stage } from "../stage.js";
import { letGo, takeAll, tryAfter, twoClients } from "./directed.js";
import { contention, infoNumber, strikeOver } from "./striking.js";

/** @throws Error  no server here is a replica of another */
export function replicasOf({ topology: { replicas } }: Stage): ReplicaControls {
  if (replicas === undefined) throw new Error("there are no replicas here");
  return replicas;
}

/**
 * From now on, no replica gets what this master writes. Freezing a replica would not do: what lies in its socket is applied
 * when it goes on. It ends with the process of the master.
 */
export async function cutReplication(master: ServerHandle): Promise<void> {
  await master.command("ACL", "SETUSER", "default", "-psync", "-sync");
  await master.command("CLIENT", "KILL", "TYPE", "replica");
}

/** How much the master has written that none of the replicas has. */
async function behind(master: ServerHandle, replicas: readonly ServerHandle[]): Promise<number> {
  const there = await Promise.all(replicas.map((replica) => infoNumber(replica, "replication", "slave_repl_offset")));
  return (await infoNumber(master, "replication", "master_repl_offset")) - Math.max(...there);
}

/** Kills the master, of which the replicas lack the last writes, and has one of them take over. */
async function promote(stage: Stage, old: ServerHandle): Promise<void> {
  const controls = replicasOf(stage);
  const beganMs = stage.nowMs();
  const lost = await behind(old, await controls.replicas());
  await old.kill();
  const next = await controls.handOver();
  const took = (stage.nowMs() - beganMs).toFixed(0);
  const proof =
    lost > 0 ? `${next.name} took over from ${old.name} after ${took} ms, without its last ${lost} bytes` : null;
  strikeOver(stage, "J31", old.name, beganMs, proof);
}

/** Long enough that no promotion outlives it where two are to hold; and where one is, as short as its waiter can wait. */
function leaseOf({ cell, leaseMs }: Stage): number {
  return (cell.expectation === "kept" ? 5 : 30) * leaseMs;
}

/** A holds by a grant that the next master has not got, and B asks that one. */
async function lostGrant(stage: Stage): Promise<void> {
  const controls = replicasOf(stage);
  const lockName = stage.newName();
  const leaseMs = leaseOf(stage);
  const [first, second] = twoClients(stage);
  await settleLeases(stage, leaseMs);
  const old = await controls.master();
  await cutReplication(old);
  const held = await takeAll(stage, first, lockName, leaseMs);
  await promote(stage, old);
  const taken = await tryAfter(stage, second, lockName, leaseMs);
  await letGo(held, taken);
  await controls.rejoin(old);
}

/** So that the servers, and those that come after them, know how long leases are before one is lost. */
async function settleLeases(stage: Stage, leaseMs: number): Promise<void> {
  for (const client of stage.clients) {
    const taken = await client.take({ lockName: stage.newName(), leaseMs, waitMs: 2 * leaseMs });
    if (taken !== undefined) await client.release(taken.leaseId);
  }
  await replicasOf(stage).settled();
}

/** The same where the next master is quiet: A keeps what it has, and B is granted it after A. */
async function keptGrant(stage: Stage): Promise<void> {
  const controls = replicasOf(stage);
  const lockName = stage.newName();
  const leaseMs = leaseOf(stage);
  const [first, second] = twoClients(stage);
  await settleLeases(stage, leaseMs);
  const old = await controls.master();
  await cutReplication(old);
  const grip = await takeAll(stage, first, lockName, leaseMs, true);
  await promote(stage, old);
  const waiting = tryAfter(stage, second, lockName, leaseMs, 5 * leaseMs);
  // Until the quiet time would be over, and each holder has restored its lease or lost it.
  await stage.sleep(1.5 * leaseMs);
  const isKept = await keeps(
    first,
    grip.taken.map(({ leaseId }) => leaseId),
  );
  stage.decide(
    "G",
    lockName,
    isKept ? undefined : `${first.name} held "${lockName}" and renewed it, and lost it by the failover`,
  );
  await letGo(grip);
  const after = await waiting;
  const isServed = after.taken.length > 0;
  stage.decide(
    "G",
    lockName,
    isServed ? undefined : `${second.name} waited for "${lockName}", and was told: ${second.lastRefusal}`,
  );
  await letGo(after);
  await controls.rejoin(old);
}

async function keeps(client: Client, leaseIds: readonly number[]): Promise<boolean> {
  for (const leaseId of leaseIds) if (!(await client.sample(leaseId))) return false;
  return true;
}

/** In the middle of everything: whatever the sessions were granted in the last moments is gone. */
async function lostAtWork(stage: Stage): Promise<void> {
  const controls = replicasOf(stage);
  const old = await controls.master();
  await cutReplication(old);
  await stage.sleep(stage.random.between(0.2, 1.5) * stage.leaseMs);
  await promote(stage, old);
  await stage.sleep(2 * stage.leaseMs);
  await controls.rejoin(old);
}

/** J31: a master dies with grants that no replica has. */
export const lostPromotion: Injection = {
  row: "J31",
  work: (stage) => ({ ...contention(stage), sessions: stage.cell.expectation === "kept" ? 2 : 0 }),
  async strike(stage) {
    if (stage.cell.expectation !== "kept") await lostGrant(stage);
    else if (stage.random.chance(0.5)) await keptGrant(stage);
    else await lostAtWork(stage);
  },
};

/** How soon sentinels take a silent master for dead, in the row that leaves it to them. */
const FAILS_OVER_AFTER_MS = 1_000;

/** J32: the sentinels choose another master, whether the old one is dead, silent, or alive; all replicas follow it. */
export const failover: Injection = {
  row: "J32",
  work: contention,
  servers: { failsOverAfterMs: FAILS_OVER_AFTER_MS },
  async strike(stage) {
    const controls = replicasOf(stage);
    const how = stage.random.pick(["killed", "frozen", "told"] as const);
    const old = await controls.master();
    const beganMs = stage.nowMs();
    if (how === "killed") await old.kill();
    else if (how === "frozen") old.freeze();
    let next: ServerHandle;
    try {
      next = how === "told" ? await controls.handOver() : await controls.succeeded(old);
    } finally {
      if (how === "frozen") old.resume();
    }
    if (how === "killed") await controls.rejoin(old);
    else await controls.settled();
    const took = (stage.nowMs() - beganMs).toFixed(0);
    strikeOver(
      stage,
      "J32",
      old.name,
      beganMs,
      `${old.name} ${how}, ${next.name} the master, all agreed after ${took} ms`,
    );
  },
};

/** J32 with the grace on: of an old master that goes on serving nothing is promised, so it is dead. */
export const guardedFailover: Injection = {
  row: "J32-grace",
  work: contention,
  async strike(stage) {
    const controls = replicasOf(stage);
    const old = await controls.master();
    const beganMs = stage.nowMs();
    await old.kill();
    const next = await controls.handOver();
    strikeOver(stage, "J32", old.name, beganMs, `${old.name} killed, ${next.name} the master`);
    await stage.sleep(2 * stage.leaseMs);
    await controls.rejoin(old);
  },
};

/** J31 on effects: two hold, and the resource takes only what the later one writes. */
export const fencedPromotion: Injection = {
  row: "J31-fenced",
  async strike(stage) {
    const controls = replicasOf(stage);
    const lockName = stage.newName();
    const leaseMs = 30 * stage.leaseMs;
    const [first, second] = twoClients(stage);
    const old = await controls.master();
    await cutReplication(old);
    const held = await takeAll(stage, first, lockName, leaseMs);
    for (const { leaseId } of held.taken) await first.write(leaseId, true);
    await promote(stage, old);
    const taken = await tryAfter(stage, second, lockName, leaseMs);
    for (const { leaseId } of taken.taken) await second.write(leaseId, true);
    for (const { leaseId } of held.taken) await first.write(leaseId, true);
    for (const { leaseId } of taken.taken) await second.write(leaseId, true);
    await letGo(held, taken);
    await controls.rejoin(old);
  },
};
