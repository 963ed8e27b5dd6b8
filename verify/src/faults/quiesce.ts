/** Checks what is left on the server when all clients are idle (L4, L7): keys, subscribers and connections. */
import type { HistoryRecord, Operation } from "../history/records.js";
import type { Cell } from "./cell.js";
import type { OpenStage } from "./parts.js";
import type { ServerHandle, Stage } from "./stage.js";
import type { Breach } from "./verdict.js";

const OWNER = /[A-Za-z0-9_-]{16}\/\d+\/\d+\/\d+(?:\/[^\s"]*)?/g;
/**
 * The key of a lock, which contains its owner and expires with its lease. Counters and queues may remain for a while.
 */
const LOCK_KEY = /^hf:(?:mutex|redlock):\{[^}]*\}$/;
/** Scans only the newest names, because older ones were scanned after later operations. */
const NAMES_SCANNED = 40;
/** The delay that a busy machine may add to the end of a lease. */
const SLACK_MS = 500;
const ENDS_WITHIN_MS = 5_000;

/**
 * Reads every key twice, immediately and when every lease has ended, and adds the owners found to the history.
 *
 * @returns violations: a key without an expiry, or a lock that outlives its lease
 */
export async function lookAtKeys(open: OpenStage): Promise<Breach[]> {
  const { stage } = open;
  const names = namesOf(open.records());
  const breaches: Breach[] = [];
  const before = await contents(stage);
  for (const record of scansOf(before, names, stage.nowMs())) open.record(record);
  for (const { key, leftMs } of before) {
    if (leftMs === -1) breaches.push({ property: "L7", lockName: key, message: `${key} is kept forever` });
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

/** Whether leases end in time: a server whose clock was changed keeps its keys by that clock. */
export function isTimely({ row }: Cell): boolean {
  return !/^J(?:28|29|30)/.test(row);
}

/** After the clients have ended: checks for remaining subscribers and connections. */
export async function lookAtListeners(stage: Stage): Promise<Breach[]> {
  const breaches: Breach[] = [];
  for (const server of stage.topology.servers) {
    const left = async (): Promise<string[]> => {
      const all = [
        ...((await server.command("PUBSUB", "CHANNELS", "*")) as string[]),
        // Does not exist before Redis 7.
        ...((await server.command("PUBSUB", "SHARDCHANNELS", "*").catch(() => [])) as string[]),
      ];
      // Sentinels communicate through the servers that they watch.
      const channels = all.filter((channel) => channel !== "__sentinel__:hello");
      const connections = String(await server.command("CLIENT", "LIST"))
        .split("\n")
        .filter((line) => !/\bname=sentinel-/.test(line))
        .filter((line) => /\bcmd=(?:evalsha|eval|s?subscribe|script)/i.test(line));
      return [...channels.map((channel) => `channel ${channel} has a subscriber`), ...connections];
    };
    // The server notices a closed socket at its next check, so this polls.
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
  /** -1 for a key without an expiry. */
  readonly leftMs: number;
  readonly owners: readonly string[];
}

/** The keys of all servers that serve clients. */
async function contents({ topology }: Stage): Promise<Content[]> {
  const servers = (await topology.replicas?.masters()) ?? topology.servers;
  return (await Promise.all(servers.map(keysAt))).flat();
}

async function keysAt(server: ServerHandle): Promise<Content[]> {
  const keys = (await server.command("KEYS", "hf:*")) as string[];
  const found: Content[] = [];
  for (const key of keys) {
    const leftMs = Number(await server.command("PTTL", key));
    // The key expired between the two commands.
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

/** The newest requested names, oldest of these first. */
export function namesOf(records: readonly HistoryRecord[]): string[] {
  return [...new Set(records.filter(isOperation).map(({ lockName }) => lockName))].slice(-NAMES_SCANNED);
}

function longestLeaseMs(records: readonly HistoryRecord[]): number {
  return records.filter(isOperation).reduce((most, { args }) => Math.max(most, args.leaseMs ?? 0), 0);
}
