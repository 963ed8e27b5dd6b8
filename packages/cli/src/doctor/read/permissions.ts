/**
 * Finds out which permissions the current user has by trying each command on a key and a channel that only the doctor
 * uses.
 */
import { asPattern, leastPrivilege, missingPermission } from "holdfast/diagnosis";
import type { Redis } from "ioredis";
import type { PermissionFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

/**
 * Tries every command that the library's scripts call, inside one script. A server checks permissions before anything
 * else, so a replica gives the same result. The script leaves no key behind: if the user may neither delete the key nor
 * set its expiry, the script does not write to it again.
 *
 * KEYS[1] probe    ARGV[1] inbox    ARGV[2] 1 in a cluster
 */
const ATTEMPTS = `-- the doctor tries what the present user may do
local missing, isMissing, forbidden = {}, {}, {}
local function try(rule, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then
    return
  end
  local words = string.lower(reply.err)
  if (string.find(words, 'permission', 1, true) or string.find(words, 'user executing the script', 1, true)) and not isMissing[rule] then
    isMissing[rule] = true
    missing[#missing + 1] = rule
  end
  -- No script may call this command, whatever its user may do; or it was renamed.
  if string.find(words, 'from script', 1, true) or string.find(words, 'same slot', 1, true) then
    forbidden[#forbidden + 1] = rule
  end
end
try('+set', 'SET', KEYS[1], 'probe', 'PX', 10000)
try('+get', 'GET', KEYS[1])
try('+psetex', 'PSETEX', KEYS[1], 10000, 'probe')
try('+pttl', 'PTTL', KEYS[1])
try('+pexpire', 'PEXPIRE', KEYS[1], 10000)
try('+exists', 'EXISTS', KEYS[1])
try('+del', 'DEL', KEYS[1])
if not isMissing['+del'] or not isMissing['+pexpire'] then
  try('+zadd', 'ZADD', KEYS[1], 1, 'a', 2, 'b')
  redis.pcall('PEXPIRE', KEYS[1], 10000)
  try('+zscore', 'ZSCORE', KEYS[1], 'a')
  try('+zcard', 'ZCARD', KEYS[1])
  try('+zrank', 'ZRANK', KEYS[1], 'a')
  try('+zrange', 'ZRANGE', KEYS[1], 0, -1)
  try('+zrevrange', 'ZREVRANGE', KEYS[1], 0, -1)
  try('+zrangebyscore', 'ZRANGEBYSCORE', KEYS[1], 0, 1)
  try('+zremrangebyscore', 'ZREMRANGEBYSCORE', KEYS[1], 5, 6)
  try('+zrem', 'ZREM', KEYS[1], 'b')
  try('+zpopmin', 'ZPOPMIN', KEYS[1])
  redis.pcall('DEL', KEYS[1])
  try('+hset', 'HSET', KEYS[1], 'a', 1)
  redis.pcall('PEXPIRE', KEYS[1], 10000)
  try('+hget', 'HGET', KEYS[1], 'a')
  try('+hmget', 'HMGET', KEYS[1], 'a')
  try('+hgetall', 'HGETALL', KEYS[1])
  try('+hlen', 'HLEN', KEYS[1])
  try('+hdel', 'HDEL', KEYS[1], 'a')
  redis.pcall('DEL', KEYS[1])
  try('+xadd', 'XADD', KEYS[1], '*', 'a', 'b')
  redis.pcall('PEXPIRE', KEYS[1], 10000)
  try('+xrevrange', 'XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
  redis.pcall('DEL', KEYS[1])
end
try('+time', 'TIME')
try('+info', 'INFO', 'server')
try('+pubsub|numsub', 'PUBSUB', 'NUMSUB', ARGV[1])
try('+publish', 'PUBLISH', ARGV[1], '')
if ARGV[2] == '1' then
  try('+pubsub|shardnumsub', 'PUBSUB', 'SHARDNUMSUB', ARGV[1])
  try('+cluster|myid', 'CLUSTER', 'MYID')
end
return {missing, forbidden}`;

/** The rules that the script above tries. A test compares them with the documented minimal permissions. */
export const TRIED_IN_SCRIPTS: ReadonlySet<string> = new Set(
  [...ATTEMPTS.matchAll(/try\('(\+[a-z|]+)'/g)].map(([, rule = ""]) => rule),
);

/** @throws Error  no reply */
export async function readPermissions(link: Link): Promise<PermissionFacts> {
  const attempts = new Attempts();
  const { redis, place, topology, prefix } = link;
  const isCluster = topology === "cluster";
  const isSharded = isCluster && Number(link.info.get("redis_version")?.split(".")[0] ?? 7) >= 7;
  const keys = [place.key];
  const channels = [place.channel];

  const sha = await attempts.try("+script|load", { keys }, redis.call("SCRIPT", "LOAD", ATTEMPTS));
  if (sha === undefined) {
    // The server checks permissions before it looks for the script, so NOSCRIPT shows that EVALSHA is permitted.
    await attempts.try("+evalsha", { keys }, redis.call("EVALSHA", "0".repeat(40), "1", place.key), /^NOSCRIPT/);
    attempts.skip(TRIED_IN_SCRIPTS, "no script could be loaded");
  } else {
    const call = redis.call("EVALSHA", String(sha), "1", place.key, place.channel, isCluster ? "1" : "0");
    const answer = await attempts.try("+evalsha", { keys }, call);
    if (answer === undefined) attempts.skip(TRIED_IN_SCRIPTS, "no script could be called");
    else {
      const [missing, forbidden] = answer as [string[], string[]];
      for (const rule of missing) attempts.refuse(rule);
      attempts.forbid(forbidden);
    }
  }
  await attempts.try("+publish", { channels }, redis.call("PUBLISH", place.channel, "probe"));
  await attempts.try("+info", {}, redis.call("INFO", "server"));
  await attempts.try("+time", {}, redis.call("TIME"));
  await attempts.try("+eval", { keys }, redis.call("EVAL", "return 1", "0"));
  await attempts.try("+scan", {}, redis.call("SCAN", "0", "COUNT", "1"));
  if (isSharded) {
    await attempts.try("+spublish", { channels }, redis.call("SPUBLISH", place.channel, "probe"), /^(MOVED|CROSSSLOT)/);
  }
  if (isCluster) await attempts.try("+cluster|slots", {}, redis.call("CLUSTER", "SLOTS"));
  const listener = link.another();
  try {
    await listener.connect();
    await tryToListen(attempts, listener, link, isSharded);
  } finally {
    listener.disconnect();
  }
  return attempts.facts(prefix);
}

async function tryToListen(
  attempts: Attempts,
  listener: Redis,
  { place, topology, prefix }: Link,
  isSharded: boolean,
): Promise<void> {
  const { channel } = place;
  // Also try the second kind of channel: that of elections or, with --redlock, that of the quorum. A topology has only
  // one of them.
  const other = topology === "redlock" ? `${prefix}:redlock:{doctor}:released` : `${prefix}:election:{doctor}:leader`;
  const heard = await attempts.try("+subscribe", { channels: [channel] }, listener.subscribe(channel));
  await attempts.try("+subscribe", { channels: [other] }, listener.subscribe(other));
  if (heard !== undefined) await attempts.try("+unsubscribe", {}, listener.unsubscribe(channel, other));
  if (!isSharded) return;
  const sharded = await attempts.try("+ssubscribe", { channels: [channel] }, listener.ssubscribe(channel), /^MOVED/);
  if (sharded !== undefined) await attempts.try("+sunsubscribe", {}, listener.sunsubscribe(channel));
}

/** Collects what was refused, by rule. */
class Attempts {
  readonly #missing = new Set<string>();
  readonly #untried = new Map<string, string>();
  #forbidden: readonly string[] = [];

  /**
   * Waits for the reply to a command that was just sent.
   *
   * @param rule     the ACL rule that the command needs
   * @param permits  matches an error that proves that the command is permitted
   * @returns the reply; undefined if the command was refused
   * @throws Error  no reply
   */
  async try(
    rule: string,
    { keys = [], channels = [] }: { readonly keys?: readonly string[]; readonly channels?: readonly string[] },
    asked: Promise<unknown>,
    permits?: RegExp,
  ): Promise<unknown> {
    try {
      return await asked;
    } catch (error) {
      if (!isReply(error)) throw error;
      const words = wordsOf(error);
      if (permits?.test(words)) return undefined;
      const missing = missingPermission(error, { keys, channels });
      if (missing !== undefined) for (const one of missing.split(" ")) this.refuse(one);
      else if (/unknown (sub)?command/i.test(words)) this.refuse(rule);
      else this.#untried.set(rule, words);
      return undefined;
    }
  }

  refuse(rule: string): void {
    this.#missing.add(rule);
  }

  forbid(rules: readonly string[]): void {
    this.#forbidden = rules.map((rule) => rule.slice(1).replace("|", " ").toUpperCase());
  }

  skip(rules: Iterable<string>, why: string): void {
    for (const rule of rules) if (!this.#missing.has(rule)) this.#untried.set(rule, why);
  }

  /** Returns the facts. Keys and channels are given as the patterns of the documented minimal permissions. */
  facts(prefix: string): PermissionFacts {
    const patterns = leastPrivilege(prefix).server.filter((rule) => /^[~&]/.test(rule));
    const patternOf = (rule: string): string => {
      const begins = rule.slice(0, 1) + asPattern(rule.slice(1));
      return patterns.find((pattern) => begins.startsWith(pattern.slice(0, -1))) ?? rule;
    };
    const missing = [...this.#missing].map((rule) => (/^[~&]/.test(rule) ? patternOf(rule) : rule));
    const untried = [...this.#untried].filter(([rule]) => !this.#missing.has(rule));
    return {
      missing: [...new Set(missing)],
      forbidden: this.#forbidden,
      untried: new Map(untried.slice(0, 1).length === 0 ? [] : grouped(untried)),
    };
  }
}

/** Joins the rules that were not tried for the same reason. */
function grouped(untried: readonly (readonly [string, string])[]): [string, string][] {
  const byReason = new Map<string, string[]>();
  for (const [rule, why] of untried) byReason.set(why, [...(byReason.get(why) ?? []), rule]);
  return [...byReason].map(([why, rules]) => [rules.join(" "), why]);
}
