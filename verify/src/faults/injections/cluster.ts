/** J34 and J35: operations on a cluster that is in use. */

import type { Injection } from "../injection.js";
import type { ServerHandle, Stage } from "../stage.js";
import { replicasOf } from "./failover.js";
import { contention, errorCount, strikeOver } from "./striking.js";

async function epochOf(server: ServerHandle): Promise<number> {
  const info = String(await server.command("CLUSTER", "INFO"));
  return Number(/^cluster_current_epoch:(\d+)/m.exec(info)?.[1] ?? 0);
}

/** J34: a coordinated failover, which loses nothing. */
export const agreedFailover: Injection = {
  row: "J34",
  work: contention,
  async strike(stage) {
    const controls = replicasOf(stage);
    const old = await controls.master();
    const before = await epochOf(old);
    const beganMs = stage.nowMs();
    const next = await controls.handOver();
    await controls.settled();
    const after = await epochOf(next);
    const proof = after > before ? `${next.name} took over from ${old.name}, epoch ${before} became ${after}` : null;
    strikeOver(stage, "J34", old.name, beganMs, proof);
  },
};

const TELLING = ["MOVED", "ASK", "TRYAGAIN"] as const;

async function redirections(stage: Stage): Promise<number[]> {
  const { servers } = stage.topology;
  const of = async (sort: string): Promise<number> =>
    (await Promise.all(servers.map((server) => errorCount(server, sort)))).reduce((sum, count) => sum + count, 0);
  return Promise.all(TELLING.map(of));
}

/** The names of locks in use. */
async function namesInUse(stage: Stage): Promise<string[]> {
  const masters = await replicasOf(stage).masters();
  const keys = await Promise.all(masters.map((master) => master.command("KEYS", "hf:*{*}*") as Promise<string[]>));
  const names = keys.flat().map((key) => /\{(.*)\}/.exec(key)?.[1] ?? "");
  return [...new Set(names)];
}

/** J35: a slot moves to another master, key by key, while a client holds one of its locks and others wait. */
export const movedSlot: Injection = {
  row: "J35",
  work: contention,
  async strike(stage) {
    const controls = replicasOf(stage);
    if (controls.moveSlot === undefined) throw new Error("there are no slots here");
    // Waits for the first locks, because the sessions have just begun.
    let names: readonly string[] = [];
    for (let tries = 0; names.length === 0 && tries < 20; tries += 1) {
      names = await namesInUse(stage);
      if (names.length === 0) await stage.sleep(stage.leaseMs / 4);
    }
    if (names.length === 0) throw new Error("no lock is in use");
    const beganMs = stage.nowMs();
    const before = await redirections(stage);
    const lockName = stage.random.pick(names);
    const between = (): Promise<void> => stage.sleep(stage.random.between(0, 60));
    const keys = await controls.moveSlot(lockName, between);
    // Until then, clients that have not heard of the move are redirected.
    await stage.sleep(stage.leaseMs);
    const after = await redirections(stage);
    const seen = TELLING.map((sort, index) => `${(after[index] ?? 0) - (before[index] ?? 0)} ${sort}`);
    const isFelt = after.some((count, index) => count > (before[index] ?? 0));
    strikeOver(
      stage,
      "J35",
      "cluster",
      beganMs,
      isFelt ? `${keys} keys of a slot moved, answered ${seen.join(", ")}` : null,
    );
  },
};
