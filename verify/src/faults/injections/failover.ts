/**
 * J31 to J34, and their consequences for tokens and effects: another server is promoted, with or without all grants.
 */

import type { Injection } from "../injection.js";
import type { Client, ReplicaControls, ServerHandle, Stage } from "../stage.js";
import { letGo, takeAll, tryAfter, twoClients } from "./directed.js";
import { contention, infoNumber, strikeOver } from "./striking.js";

/** @throws Error  there are no replicas */
export function replicasOf({ topology: { replicas } }: Stage): ReplicaControls {
  if (replicas === undefined) throw new Error("there are no replicas here");
  return replicas;
}

/**
 * Stops replication of this master's writes. Freezing a replica would not be enough, because it would apply data in
 * its socket after it continues. Ends with the master's process.
 */
export async function cutReplication(master: ServerHandle): Promise<void> {
  await master.command("ACL", "SETUSER", "default", "-psync", "-sync");
  await master.command("CLIENT", "KILL", "TYPE", "replica");
}

/** How many bytes of the master's writes no replica has. */
async function behind(master: ServerHandle, replicas: readonly ServerHandle[]): Promise<number> {
  const there = await Promise.all(replicas.map((replica) => infoNumber(replica, "replication", "slave_repl_offset")));
  return (await infoNumber(master, "replication", "master_repl_offset")) - Math.max(...there);
}

/** Kills the master, whose replicas lack the last writes, and promotes one of them. */
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

/** Long enough to outlast every promotion if two holders are expected; otherwise short enough for the other to wait. */
function leaseOf({ cell, leaseMs }: Stage): number {
  return (cell.expectation === "kept" ? 5 : 30) * leaseMs;
}

/** A holds with a grant that the promoted server lacks, and B asks that server. */
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

/** Makes all servers, and their successors, learn the lease length before a lease is lost. */
async function settleLeases(stage: Stage, leaseMs: number): Promise<void> {
  for (const client of stage.clients) {
    const taken = await client.take({ lockName: stage.newName(), leaseMs, waitMs: 2 * leaseMs });
    if (taken !== undefined) await client.release(taken.leaseId);
  }
  await replicasOf(stage).settled();
}

/** The same with a quiet time on the promoted server: A keeps its lease, and B is granted after A. */
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
  // Waits until the quiet time would have ended, and each holder has restored its lease or lost it.
  await stage.sleep(1.5 * leaseMs);
  const isKept = await keeps(
    first,
    grip.taken.map(({ leaseId }) => leaseId),
  );
  stage.decide(
    "G",
    lockName,
    isKept ? undefined : `${first.name} held "${lockName}" and renewed it, but lost it in the failover`,
  );
  await letGo(grip);
  const after = await waiting;
  const isServed = after.taken.length > 0;
  stage.decide(
    "G",
    lockName,
    isServed ? undefined : `${second.name} waited for "${lockName}", but was refused: ${second.lastRefusal}`,
  );
  await letGo(after);
  await controls.rejoin(old);
}

async function keeps(client: Client, leaseIds: readonly number[]): Promise<boolean> {
  for (const leaseId of leaseIds) if (!(await client.sample(leaseId))) return false;
  return true;
}

/** A failover under load: the last grants of the sessions are lost. */
async function lostAtWork(stage: Stage): Promise<void> {
  const controls = replicasOf(stage);
  const old = await controls.master();
  await cutReplication(old);
  await stage.sleep(stage.random.between(0.2, 1.5) * stage.leaseMs);
  await promote(stage, old);
  await stage.sleep(2 * stage.leaseMs);
  await controls.rejoin(old);
}

/** J31: a master is killed with grants that no replica has. */
export const lostPromotion: Injection = {
  row: "J31",
  work: (stage) => ({ ...contention(stage), sessions: stage.cell.expectation === "kept" ? 2 : 0 }),
  async strike(stage) {
    if (stage.cell.expectation !== "kept") await lostGrant(stage);
    else if (stage.random.chance(0.5)) await keptGrant(stage);
    else await lostAtWork(stage);
  },
};

/** How soon sentinels consider a silent master dead, in the row that relies on them. */
const FAILS_OVER_AFTER_MS = 1_000;

/** J32: sentinels elect another master while the old one is dead, silent or alive; all replicas follow the new one. */
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

/** J32 with the grace on. The old master is dead, because nothing is guaranteed if it keeps serving. */
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

/** J31 on effects: there are two holders, and the resource accepts only writes of the later one. */
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
