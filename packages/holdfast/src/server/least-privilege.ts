/**
 * The smallest Redis user, as rules of ACL SETUSER. docs/safety.md prints them, and packages/holdfast/tests/permissions shows
 * that none is missing and none is too much.
 */

/** What a user needs, each rule one word. */
export interface LeastPrivilege {
  /** On every server. */
  readonly server: readonly string[];
  /** Besides, on each server of a cluster. Before Redis 7 there are no such commands. */
  readonly cluster: readonly string[];
  /** What client libraries ask there, most of it before they send anything. */
  readonly clusterClients: readonly string[];
}

const COMMANDS = [
  ...["+evalsha", "+script|load", "+subscribe", "+unsubscribe", "+info"],
  ...["+get", "+set", "+psetex", "+del", "+exists", "+time", "+pttl", "+pexpire"],
  ...["+zadd", "+zrem", "+zscore", "+zcard", "+zrank", "+zrange", "+zrevrange"],
  ...["+zrangebyscore", "+zremrangebyscore", "+zpopmin"],
  ...["+hset", "+hget", "+hdel", "+hmget", "+hgetall", "+hlen", "+publish", "+pubsub|numsub"],
];

/**
 * What Holdfast needs of Redis with keys and channels that begin with `prefix`, and no more. For 6.2 and later.
 *
 * @param prefix  as `HoldfastOptions.prefix`
 */
export function leastPrivilege(prefix: string): LeastPrivilege {
  const begins = asPattern(prefix);
  return {
    server: [`~${begins}:*`, `&${begins}:in:*`, `&${begins}:election:*`, `&${begins}:redlock:*`, ...COMMANDS],
    cluster: ["+ssubscribe", "+sunsubscribe", "+spublish", "+pubsub|shardnumsub", "+cluster|myid"],
    clusterClients: ["+cluster|slots", "+cluster|info", "+readonly", "+ping", "+client|setname"],
  };
}

/** A text that stands for itself in a pattern of Redis, in which `*`, `?`, `[` and `\` do not. */
export function asPattern(text: string): string {
  return text.replace(/[*?[\]\\]/g, "\\$&");
}
