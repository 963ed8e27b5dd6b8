/** Helpers for faults: target selection, proofs, and waiting for them. */

import { readFileSync } from "node:fs";
import type { LateRequest } from "../../history/records.js";
import type { Client, Matches, ServerHandle, Stage, Work } from "../stage.js";

/** The prefix of keys that belong to no lock; in a cluster they are on the first node. */
export const PROBE = "{probe}:";

/** The target server, or else the first one. @throws Error  there is none */
export function serverOf({ topology }: Stage): ServerHandle {
  const server = topology.target ?? topology.servers[0];
  if (server === undefined) throw new Error("the topology has no server");
  return server;
}

/**
 * The workload during faults: few names, so that callers nearly always wait, and leases that are released well before
 * they end, unless they are renewed.
 */
export function contention(stage: Stage): Work {
  const { leaseMs, cell } = stage;
  return {
    names: 3,
    sessions: 2,
    leaseMs,
    holdMs: cell.letter === "a" ? 2.5 * leaseMs : leaseMs / 4,
    waitMs: 4 * leaseMs,
    effects: "none",
  };
}

/** Records a fault that began then and has ended now. */
export function strikeOver(
  stage: Stage,
  id: string,
  target: string,
  beganMs: number,
  proof: string | null,
  late: readonly LateRequest[] = [],
): void {
  stage.struck({ id, target, beganMs, endedMs: stage.nowMs(), proof, ...(late.length > 0 ? { late } : {}) });
}

/** Whether it resolves in time. A rejection does not count. */
export async function happens(stage: Stage, event: Promise<unknown>, withinMs: number): Promise<boolean> {
  const seen = event.then(
    () => true,
    () => false,
  );
  return await Promise.race([seen, stage.sleep(withinMs).then(() => false)]);
}

/**
 * Matches requests that change a lock: those of Holdfast by script name, those of a peer by command. Holdfast's requests
 * are sent by hash and have names, so the patterns for peers do not match them.
 */
export const isOfALock: Matches = ([command = "", script = "", ...words]) => {
  switch (command.toUpperCase()) {
    case "EVALSHA":
      return !script.startsWith("client-record/") && !script.endsWith("/inspect");
    case "DELIFEQ":
      return true;
    case "EVAL":
      return !script.includes("/");
    case "SET":
      return words.some((word) => word.toUpperCase() === "NX");
    default:
      return false;
  }
};

/** Matches requests about that lock, whatever its kind; for a peer, which names no verb, any of them. */
export function isAbout(
  { peer, keyPrefix }: Pick<Stage, "peer" | "keyPrefix">,
  lockName: string,
  verb: string,
): Matches {
  if (peer !== undefined) {
    const key = keyPrefix(lockName);
    return (words) => isOfALock(words) && words.includes(key);
  }
  const tag = `{${lockName}}`;
  return (words) => {
    const isVerb = words[1]?.endsWith(`/${verb}`) === true || (verb === "release" && words[0] === "DELIFEQ");
    return isOfALock(words) && isVerb && words.some((word) => word.includes(tag));
  };
}

/**
 * Like `matches`, until `giveUp` is called. An armed fault that never matched would otherwise strike later,
 * uncounted.
 */
export function untilGivenUp(matches: Matches): { readonly matches: Matches; giveUp(): void } {
  let isGivenUp = false;
  return {
    matches: (words) => !isGivenUp && matches(words),
    giveUp() {
      isGivenUp = true;
    },
  };
}

/** The server's run id. */
export async function runIdOf(server: ServerHandle): Promise<string> {
  return /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
}

/** Bounds on the difference between a server's wall clock and this host's, in ms. */
export interface Ahead {
  readonly leastMs: number;
  readonly mostMs: number;
}

const MOST_READINGS = 60;
const CLOSE_ENOUGH_MS = 1;

/** Compares the clocks as closely as the connection allows: the fastest of several replies counts. */
export async function aheadOf(server: ServerHandle): Promise<Ahead> {
  let closest: Ahead = { leastMs: Number.NEGATIVE_INFINITY, mostMs: Number.POSITIVE_INFINITY };
  for (let count = 0; count < MOST_READINGS && closest.mostMs - closest.leastMs > CLOSE_ENOUGH_MS; count += 1) {
    const beforeMs = wallMs();
    const [seconds, microseconds] = (await server.command("TIME")) as string[];
    const afterMs = wallMs();
    const thereMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    if (afterMs - beforeMs < closest.mostMs - closest.leastMs)
      closest = { leastMs: thereMs - afterMs, mostMs: thereMs - beforeMs };
  }
  return closest;
}

/** Finer than Date.now(). Does not follow steps of this host's clock, which no test makes. */
function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The number of error replies of that type since the server's start. */
export async function errorCount(server: ServerHandle, sort: string): Promise<number> {
  const info = String(await server.command("INFO", "errorstats"));
  return Number(new RegExp(`errorstat_${sort}:count=(\\d+)`).exec(info)?.[1] ?? 0);
}

/** A number from INFO. */
export async function infoNumber(server: ServerHandle, section: string, field: string): Promise<number> {
  const info = String(await server.command("INFO", section));
  return Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? Number.NaN);
}

/** The servers that must lose their memory for a lock to be lost: all independent ones, or the single one. */
export function allOf(stage: Stage): readonly ServerHandle[] {
  return stage.topology.quorum === undefined ? [serverOf(stage)] : stage.topology.servers;
}

/** The current keys of a lock. */
export async function keysOf(stage: Stage, lockName: string): Promise<string[]> {
  return (await serverOf(stage).command("KEYS", `${stage.keyPrefix(lockName)}*`)) as string[];
}

/** Whether the kernel has stopped the process. */
export function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}

/**
 * Freezes a client for that time. @returns how long the kernel kept it stopped; null if it was not stopped
 *
 * The kernel is asked at the end too, because a process that was continued in between was not frozen.
 */
export async function freezeFor(stage: Stage, client: Client, forMs: number): Promise<string | null> {
  client.freeze();
  const beganMs = stage.nowMs();
  let proof: string | null = null;
  try {
    await stage.sleep(forMs);
    if (isStopped(client.pid)) proof = `process ${client.pid} stopped for ${(stage.nowMs() - beganMs).toFixed(0)} ms`;
  } finally {
    client.resume();
  }
  return proof;
}

/** Between half a lease and three. */
export function pauseMs(stage: Stage): number {
  return stage.random.between(0.5, 3) * stage.leaseMs;
}
