/** What is left when everybody has come to rest (L4, L7): on the server in keys, listeners and connections. */
import type { HistoryRecord, Operation } from "../history/records.js";
import type { Cell } from "./cell.js";
import type { OpenStage } from "./parts.js";
import type { ServerHandle, Stage } from "./stage.js";
import type { Breach } from "./verdict.js";

const OWNER = /[A-Za-z0-9_-]{16}\/\d+\/\d+\/\d+(?:\/[^\s"]*)?/g;
/** The lock itself, which holds an owner and goes with its lease; counters and queues may stay for a while. */
const LOCK_KEY = /^hf:(?:mutex|redlock):\{[^}]*\}$/;
/** Newest names only: what came to rest long ago has been scanned by its successors. */
const NAMES_SCANNED = 40;
/** For what a busy machine adds to a lease that ends. */
const SLACK_MS = 500;
const ENDS_WITHIN_MS = 5_000;

/**
 * Reads every key twice, at once and when every lease is over, and puts the owners found into the history.
 *
 * @returns what may not be there: a key without an end, a lock that outlives its lease
 */
export async function lookAtKeys(open: OpenStage): Promise<Breach[]> {
  const { stage } = open;
  const names = namesOf(open.records());
  const breaches: Breach[] = [];
  const before = await contents(stage);
  for (const record of scansOf(before, names, stage.nowMs())) open.record(record);
  for (const { key, leftMs } of before) {
    if (leftMs === -1) breaches.push({ property: "L7", lockName: key, message: `${key} is kept for ever` });
  }
  if (!isTimely(stage.cell)) return breaches;
  await stage.sleep(longestLeaseMs(open.records()) * 1.01 + SLACK_MS);
  const after = await contents(stage);
  for (const record of scansOf(after, names, stage.nowMs())) open.record(record);
  for (const { key, owners } of after) {
    if (LOCK_KEY.test(key))
      breaches.push({ property: "L4", lockName: key, message: `${key} outlives every lease, for ${owners.join()}` });
  }
  return breaches;
}

/** Whether leases end when they should: a server whose clock was tampered with keeps its keys by that clock. */
export function isTimely({ row }: Cell): boolean {
  return !/^J(?:28|29|30)/.test(row);
}

/** After the clients have gone: whether anybody still listens, or is still connected. */
export async function lookAtListeners(stage: Stage): Promise<Breach[]> {
  const breaches: Breach[] = [];
  for (const server of stage.topology.servers) {
    const left = async (): Promise<string[]> => {
      const all = [
        ...((await server.command("PUBSUB", "CHANNELS", "*")) as string[]),
        // Before Redis 7 there are none.
        ...((await server.command("PUBSUB", "SHARDCHANNELS", "*").catch(() => [])) as string[]),
      ];
      // Sentinels talk to each other by the servers that they watch.
      const channels = all.filter((channel) => channel !== "__sentinel__:hello");
      const connections = String(await server.command("CLIENT", "LIST"))
        .split("\n")
        .filter((line) => !/\bname=sentinel-/.test(line))
        .filter((line) => /\bcmd=(?:evalsha|eval|s?subscribe|script)/i.test(line));
      return [...channels.map((channel) => `channel ${channel} is listened to`), ...connections];
    };
    // The server learns of a closed socket when it next looks, so this asks until it has.
    const endMs = stage.nowMs() + ENDS_WITHIN_MS;
    let found = await left();
    while (found.length > 0 && stage.nowMs() < endMs) {
      await stage.sleep(20);
      found = await left();
    }
    for (const message of found) breaches.push({ property: "L7", lockName: "", message: `left behind: ${message}` });
  }
  return breaches;
}

interface Content {
  readonly key: string;
  /** -1 for a key without an end. */
  readonly leftMs: number;
  readonly owners: readonly string[];
}

/** Of all servers that clients are served by. */
async function contents({ topology }: Stage): Promise<Content[]> {
  const servers = (await topology.replicas?.masters()) ?? topology.servers;
  return (await Promise.all(servers.map(keysAt))).flat();
}

async function keysAt(server: ServerHandle): Promise<Content[]> {
  const keys = (await server.command("KEYS", "hf:*")) as string[];
  const found: Content[] = [];
  for (const key of keys) {
    const leftMs = Number(await server.command("PTTL", key));
    // Gone between the two commands.
    if (leftMs === -2) continue;
    found.push({ key, leftMs, owners: JSON.stringify(await readKey(server, key)).match(OWNER) ?? [] });
  }
  return found;
}

async function readKey(server: ServerHandle, key: string): Promise<unknown> {
  switch (await server.command("TYPE", key)) {
    case "string":
      return await server.command("GET", key);
    case "hash":
      return await server.command("HGETALL", key);
    case "zset":
      return await server.command("ZRANGE", key, 0, -1);
    case "set":
      return await server.command("SMEMBERS", key);
    case "list":
      return await server.command("LRANGE", key, 0, -1);
    default:
      return null;
  }
}

function scansOf(keys: readonly Content[], names: readonly string[], atMs: number): HistoryRecord[] {
  return names.map((lockName) => ({
    type: "key-scan",
    atMs,
    lockName,
    owners: keys.filter(({ key }) => key.includes(`{${lockName}}`)).flatMap(({ owners }) => owners),
    isReachable: true,
  }));
}

function isOperation(record: HistoryRecord): record is Operation {
  return record.type === "operation";
}

/** The names that anybody called for, the newest of them, the oldest of these first. */
export function namesOf(records: readonly HistoryRecord[]): string[] {
  return [...new Set(records.filter(isOperation).map(({ lockName }) => lockName))].slice(-NAMES_SCANNED);
}

function longestLeaseMs(records: readonly HistoryRecord[]): number {
  return records.filter(isOperation).reduce((most, { args }) => Math.max(most, args.leaseMs ?? 0), 0);
}
