/** Reads one server: first the facts that are always read, then those that the checks need. */
import type { Redis, RedisOptions } from "ioredis";
import type { FactFamily, NodeFacts, Topology } from "../facts.js";
import { once, type Target } from "../target.js";
import { readAnonymous } from "./anonymous.js";
import { type ClockReading, readClock, readLatency, startClock } from "./clock.js";
import { placeOf, readCluster } from "./cluster.js";
import { readInbox } from "./inbox.js";
import { parseInfo } from "./info.js";
import { readKeys } from "./keys.js";
import { readLineage } from "./lineage.js";
import { isReply, type Link, within, wordsOf } from "./link.js";
import { readPauses } from "./pauses.js";
import { readPermissions } from "./permissions.js";
import { readScripts } from "./scripts.js";
import { readFlushers, readSlow } from "./slow.js";

/** What to read, and how long that may take. */
export interface ReadOptions {
  readonly prefix: string;
  readonly topology: Topology;
  readonly families: ReadonlySet<FactFamily>;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  /** The time limit for all families together. Facts that have not arrived by then count as not known. */
  readonly forMs: number;
}

/** The CONFIG parameters to read. Each is named, because `*` would also show passwords. */
const PARAMETERS = [
  ...["maxmemory-policy", "maxmemory", "appendonly", "appendfsync", "save", "stop-writes-on-bgsave-error"],
  ...["min-replicas-to-write", "min-replicas-max-lag", "protected-mode", "bind", "requirepass"],
  ...["busy-reply-threshold", "lua-time-limit", "maxclients", "timeout", "tcp-keepalive"],
];

/** Reads one server. Never rejects: a fact that cannot be read stays undefined, and `hidden` says why. */
export async function readNode(target: Target, options: ReadOptions): Promise<NodeFacts> {
  const timeouts = { connectMs: options.connectTimeoutMs, commandMs: options.commandTimeoutMs };
  const { host = "127.0.0.1", path } = target.options;
  const about = {
    node: target.node,
    topology: options.topology,
    isGiven: target.isGiven,
    isLocal: path !== undefined || /^(127\.|::1$|localhost$)/.test(host),
  };
  const nothing = { info: new Map(), config: new Map(), hidden: new Map() };
  const redis = once(target.options, timeouts);
  let last: unknown;
  redis.on("error", (error) => {
    last = error;
  });
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    return { ...about, ...nothing, unreachable: wordsOf(last ?? error) };
  }
  const opened = new Set<Redis>([redis]);
  try {
    const another: Link["another"] = ({ isAnonymous } = { isAnonymous: false }) => {
      const other = once(isAnonymous ? anonymousOf(target.options) : target.options, timeouts);
      opened.add(other);
      return other;
    };
    return { ...about, ...(await read(redis, another, options)) };
  } catch (error) {
    return { ...about, ...nothing, unreachable: wordsOf(error) };
  } finally {
    for (const one of opened) one.disconnect();
  }
}

/** A client without credentials has no certificate either. */
function anonymousOf({ username: _u, password: _p, tls, ...options }: RedisOptions): RedisOptions {
  if (tls === undefined) return options;
  const { cert: _c, key: _k, pfx: _x, ...trust } = tls;
  return { ...options, tls: trust };
}

type Read = Omit<NodeFacts, "node" | "topology" | "isGiven" | "isLocal">;

async function read(redis: Redis, another: Link["another"], options: ReadOptions): Promise<Read> {
  const { families, prefix, topology, forMs } = options;
  const endAtMs = performance.now() + forMs;
  const hidden = new Map<string, string>();
  const tried = async <Fact>(what: string, asked: Promise<Fact>): Promise<Fact | undefined> => {
    try {
      return await asked;
    } catch (error) {
      hidden.set(what, wordsOf(error));
      return undefined;
    }
  };
  const info = parseInfo(String((await infoOf(redis, hidden)) ?? ""));
  const [config, role, user] = await Promise.all([
    tried("CONFIG", configOf(redis)),
    tried("ROLE", redis.call("ROLE")),
    tried("ACL WHOAMI", redis.call("ACL", "WHOAMI")),
  ]);
  const its = Array.isArray(role) ? String(role[0]) : info.get("role");
  const place = await placeOf(redis, topology, prefix);
  const link: Link = { redis, another, prefix, topology, info, place, isPrimary: its === "master", endAtMs, forMs };
  // A replica of a cluster redirects reads to its primary unless the connection sends READONLY.
  if (topology === "cluster" && !link.isPrimary) await tried("READONLY", redis.call("READONLY"));

  const facts: { -readonly [Name in FactFamily | "flushers"]?: unknown } = {};
  const read = async (family: FactFamily, ask: () => Promise<unknown>): Promise<void> => {
    if (!families.has(family)) return;
    const fact = await tried(family, within(ask(), link));
    if (fact !== undefined) facts[family === "users" ? "flushers" : family] = fact;
  };
  let start: ClockReading | undefined;
  if (families.has("clock")) start = await tried("clock", startClock(link));
  // Measure latency before the server gets any other work.
  await read("latency", () => readLatency(link));
  await Promise.all([
    read("anonymous", () => readAnonymous(link)),
    read("cluster", () => readCluster(link)),
    read("inbox", () => readInbox(link)),
    read("lineage", () => readLineage(link)),
    read("permissions", () => readPermissions(link)),
    read("scripts", () => readScripts(link)),
    read("slow", () => readSlow(link)),
    read("users", () => readFlushers(link)),
  ]);
  if (start !== undefined) {
    const began = start;
    await read("clock", () => readClock(link, began));
  }
  // With many keys, each of these two readers uses all the remaining time.
  await Promise.all([read("keys", () => readKeys(link)), read("pauses", () => readPauses(link))]);
  return {
    ...(facts as Partial<Read>),
    info,
    config: config ?? new Map(),
    hidden,
    ...(its === undefined ? {} : { role: its }),
    // Without permission for ACL WHOAMI, use the user name of the connection.
    user: typeof user === "string" ? user : (redis.options.username ?? "default"),
  };
}

/** Reads INFO, the first command; undefined if it is refused. @throws Error  no reply, or an authentication error */
async function infoOf(redis: Redis, hidden: Map<string, string>): Promise<unknown> {
  try {
    return await redis.call("INFO");
  } catch (error) {
    const words = wordsOf(error);
    // Any reply except a demand for authentication shows that the server can be examined.
    if (!isReply(error) || /^(NOAUTH|DENIED)\b/.test(words)) throw error;
    hidden.set("INFO", words);
    return undefined;
  }
}

async function configOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const config = new Map<string, string>();
  const answers = await Promise.allSettled(PARAMETERS.map((name) => redis.call("CONFIG", "GET", name)));
  let refusal: unknown;
  for (const answer of answers) {
    if (answer.status === "rejected") refusal ??= answer.reason;
    else if (Array.isArray(answer.value) && answer.value.length >= 2) {
      const [name, value] = answer.value.map(String) as [string, string];
      // For a secret, it is enough to record that it is set.
      config.set(name, name === "requirepass" && value !== "" ? "set" : value);
    }
  }
  if (config.size === 0 && refusal !== undefined) throw refusal;
  return config;
}
