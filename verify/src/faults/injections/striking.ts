/** What strikes have in common: whom they hit, what they look at for a proof, and how long they wait for it. */

import { readFileSync } from "node:fs";
import type { LateRequest } from "../../history/records.js";
import type { Client, Matches, ServerHandle, Stage, Work } from "../stage.js";

/** How keys begin that are no lock's; in a cluster they are on the first node. */
export const PROBE = "{probe}:";

/** The server that is aimed at, or else the first: the only one, of a single server. @throws Error  there is none */
export function serverOf({ topology }: Stage): ServerHandle {
  const server = topology.target ?? topology.servers[0];
  if (server === undefined) throw new Error("the topology has no server");
  return server;
}

/**
 * The load while faults strike: few names, so that a caller nearly always waits, and leases that are released well
 * before they end, unless they are renewed.
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

/** Puts a fault on record that began then and is over now. */
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

/** Whether it happened in that time. A rejection is not what was waited for. */
export async function happens(stage: Stage, event: Promise<unknown>, withinMs: number): Promise<boolean> {
  const seen = event.then(
    () => true,
    () => false,
  );
  return await Promise.race([seen, stage.sleep(withinMs).then(() => false)]);
}

/**
 * Requests that change a lock: of this library by the names of their scripts, of a peer as it sends them. Ours are sent
 * by their hashes and are known by their names, so that what is said of peers takes in nothing of ours.
 */
export const isOfALock: Matches = ([command = "", script = "", ...words]) => {
  switch (command.toUpperCase()) {
    case "EVALSHA":
      return !script.startsWith("client-record/") && !script.endsWith("/inspect");
    case "EVAL":
      return !script.includes("/");
    case "SET":
      return words.some((word) => word.toUpperCase() === "NX");
    default:
      return false;
  }
};

/** Requests of that lock, whatever its kind; of a peer, which names no verb, whichever comes first. */
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
  return (words) =>
    isOfALock(words) && words[1]?.endsWith(`/${verb}`) === true && words.some((word) => word.includes(tag));
}

/**
 * As `matches`, until it is given up. An armed fault that never matched would otherwise strike later, uncounted.
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

/** What the server calls this life of its own. */
export async function runIdOf(server: ServerHandle): Promise<string> {
  return /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
}

/** By how much a server's wall clock is ahead of this host's, in ms: no less, and no more. */
export interface Ahead {
  readonly leastMs: number;
  readonly mostMs: number;
}

const MOST_READINGS = 60;
const CLOSE_ENOUGH_MS = 1;

/** Compares the clocks as closely as the way to the server allows: the quickest of some answers counts. */
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

/** Finer than Date.now(). It does not follow a step of this host's clock, which no test makes. */
function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

/** How many errors of that sort the server has answered in this life. */
export async function errorCount(server: ServerHandle, sort: string): Promise<number> {
  const info = String(await server.command("INFO", "errorstats"));
  return Number(new RegExp(`errorstat_${sort}:count=(\\d+)`).exec(info)?.[1] ?? 0);
}

/** A number from INFO. */
export async function infoNumber(server: ServerHandle, section: string, field: string): Promise<number> {
  const info = String(await server.command("INFO", section));
  return Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? Number.NaN);
}

/** The servers that have to forget something for it to be forgotten: of independent ones all, or else the one. */
export function allOf(stage: Stage): readonly ServerHandle[] {
  return stage.topology.quorum === undefined ? [serverOf(stage)] : stage.topology.servers;
}

/** The keys of a lock that are there now. */
export async function keysOf(stage: Stage, lockName: string): Promise<string[]> {
  return (await serverOf(stage).command("KEYS", `${stage.keyPrefix(lockName)}*`)) as string[];
}

/** Whether the kernel has stopped the process. */
export function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}

/**
 * Freezes a client for so long. Says how long the kernel had it stopped, or null if it had not.
 *
 * The kernel is asked at the end too: a process that was continued in between was not frozen.
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
