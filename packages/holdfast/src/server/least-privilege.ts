/**
 * The minimum permissions of a Redis user for Holdfast, as ACL SETUSER rules. docs/permissions.md lists them, and
 * packages/holdfast/tests/permissions verifies that no rule is missing and none is unnecessary.
 */

/** The ACL rules that a user needs. Each rule is one word. */
export interface LeastPrivilege {
  /** The rules for every server. */
  readonly server: readonly string[];
  /**
   * Additional rules for each server of a cluster. Redis before version 7 rejects the rules for sharded channels, such
   * as `+ssubscribe`.
   */
  readonly cluster: readonly string[];
  /** Commands that client libraries send to a cluster on their own, most of them before the first request. */
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
 * Returns exactly the rules that Holdfast needs for keys and channels that begin with `prefix`. For Redis 6.2 and
 * later.
 *
 * @param prefix  see `HoldfastOptions.prefix`
 */
export function leastPrivilege(prefix: string): LeastPrivilege {
  const begins = asPattern(prefix);
  return {
    server: [`~${begins}:*`, `&${begins}:in:*`, `&${begins}:election:*`, `&${begins}:redlock:*`, ...COMMANDS],
    cluster: ["+ssubscribe", "+sunsubscribe", "+spublish", "+pubsub|shardnumsub", "+cluster|myid"],
    clusterClients: ["+cluster|slots", "+cluster|info", "+readonly", "+ping", "+client|setname"],
  };
}

/** Escapes text for a Redis glob pattern, in which `*`, `?`, `[`, `]` and `\` are special. */
export function asPattern(text: string): string {
  return text.replace(/[*?[\]\\]/g, "\\$&");
}
