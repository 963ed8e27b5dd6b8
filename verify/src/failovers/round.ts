/**
 * One failover: replication is cut, grants continue for a while and are lost, the master is killed, a replica is
 * promoted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "./chance.js";
import { type Crew, nowMs } from "./crew.js";
import { cutReplication, holdersOn, mendReplication, type Node, offsetOf, type Stage } from "./stage.js";

/** The observations of one failover. */
export interface Failover {
  readonly names: readonly string[];
  readonly cutAtMs: number;
  readonly killedAtMs: number;
  readonly promotedAtMs: number;
  /** When the old master was restarted. */
  readonly restartedAtMs: number;
  /**
   * When a second master was seen next to the promoted one; undefined if there was none. Holdfast guarantees nothing
   * in that case.
   */
  readonly rivalAtMs: number | undefined;
  /** Bytes of the master's writes that the promoted replica never received. */
  readonly lostBytes: number;
  /** The holder of each lock, as the promoted replica knew it. */
  readonly holders: ReadonlyMap<string, string | null>;
  /** Locks that were not granted again in time. */
  readonly stuck: readonly string[];
}

/** A timeout for servers that never agree and locks that are never granted; it does not measure speed. */
const PATIENCE_MS = 30_000;
const PROBE_EVERY_MS = 10;

/**
 * Runs one failover, and waits until all servers are up again. @throws Error  the servers did not behave as expected
 */
export async function failOver(stage: Stage, crew: Crew, chance: Chance, leaseMs: number): Promise<Failover> {
  await stage.settled();
  const beganAtMs = nowMs();
  const shards = await stage.shards();
  const { master, names } = shards[Math.floor(chance.between(0, shards.length))] ?? { names: [] };
  if (master === undefined) throw new Error("there is no master");
  await until("all locks are granted", () => names.every((name) => crew.grantedAtMs(name) > beganAtMs - 2 * leaseMs));

  const replicas = await stage.replicasOf(master);
  await Promise.all(replicas.map(cutReplication));
  const cutAtMs = nowMs();
  await sleep(chance.between(300, 1_200));
  await until("a lock is granted that no replica knows of", () =>
    names.some((name) => crew.grantedAtMs(name) > cutAtMs),
  );
  const written = await offsetOf(master);
  await master.kill();
  const killedAtMs = nowMs();
  const known = await Promise.all(
    replicas.map(async (replica) => ({
      id: replica.id,
      lostBytes: written - (await offsetOf(replica)),
      holders: await holdersOn(replica, names),
    })),
  );

  const [first = ""] = names;
  let successor = master;
  await until("another master", async () => {
    successor = await stage.masterOf(first).catch(() => master);
    if (successor.id === master.id) return false;
    return String(await successor.command("ROLE").catch(() => "")).startsWith("master");
  });
  const promotedAtMs = nowMs();
  let isOver = false;
  let rivalAtMs: number | undefined;
  const watching = (async () => {
    while (!isOver) {
      if (rivalAtMs === undefined && (await hasRival(stage, successor))) rivalAtMs = nowMs();
      await sleep(50);
    }
  })();
  await Promise.all(replicas.map(mendReplication));
  const seen = known.find(({ id }) => id === successor.id);
  const isServed = (name: string): boolean => crew.grantedAtMs(name) > promotedAtMs;
  await until("all locks are granted again", () => names.every(isServed)).catch(() => {});
  const stuck = names.filter((name) => !isServed(name));
  const restartedAtMs = nowMs();
  await stage.restart(master, successor);
  await stage.settled();
  isOver = true;
  await watching;
  const { lostBytes = 0, holders = new Map<string, string | null>() } = seen ?? {};
  return { names, cutAtMs, killedAtMs, promotedAtMs, restartedAtMs, rivalAtMs, lostBytes, holders, stuck };
}

/**
 * Whether another server of the shard also acts as a master, because sentinels may elect twice. A cluster has an
 * epoch for each election.
 */
async function hasRival(stage: Stage, successor: Node): Promise<boolean> {
  if (stage.topology === "cluster") return false;
  const roles = await Promise.all(
    stage.nodes.filter(({ id }) => id !== successor.id).map((node) => node.command("ROLE").catch(() => "not running")),
  );
  return roles.some((role) => String(role).startsWith("master"));
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error(`timed out waiting until ${what}`);
    await sleep(PROBE_EVERY_MS);
  }
}
