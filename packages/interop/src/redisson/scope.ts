/** The configuration that all objects of one `redisson()` share: names, channels and leases. */

import { randomUUID } from "node:crypto";
import { checkWhole, type Internals, type ResolvedOptions, type Session, show, unknownOption } from "holdfast/internal";
import type { NameMapper, NameRules } from "./names.js";

/** The command that publishes the messages of a lock. See `RedissonOptions.publish`. */
export type Publish = "plain" | "sharded" | "both";

/** Options of `redisson()`. All must match the configuration of the Java services. */
export interface RedissonOptions {
  /**
   * Maps a name to the name on the server, like the `NameMapper` of the Java services. Add a prefix here, not with the
   * client's `keyPrefix`, which does not apply to channels and derived names.
   * @default the name is not changed
   */
  readonly nameMapper?: NameMapper | undefined;

  /**
   * How waiters are notified: `PUBLISH`, `SPUBLISH`, or both. Redisson's choice depends on its configuration, which
   * Holdfast cannot see. Since version 3.22 it uses `SPUBLISH` on a cluster of Redis 7 or later, unless
   * `shardedSubscriptionMode` is `OFF`. Everywhere else it uses `PUBLISH`. A wrong choice is still safe, but waiters on
   * the other side sleep until the lease ends. `"both"` publishes and subscribes twice. `"sharded"` is for clusters
   * only.
   * @default "plain" on one server and behind Sentinel, "both" on a cluster
   */
  readonly publish?: Publish | undefined;

  /**
   * The shortest `lockWatchdogTimeout` of the Java services. The lease of a read lock cannot be longer, because
   * Redisson sets the shared expiry of all readers to this timeout whenever it renews one of its own read locks. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 30_000
   */
  readonly watchdogMs?: number | undefined;

  /**
   * How long a waiter with `waitMs: Infinity` keeps its place in a fair lock's queue: the `fairLockWaitTimeout` of the
   * Java services. With a longer time, a crashed waiter delays the waiters behind it for longer. With a shorter time,
   * waiters of a lock that is held for a long time lose their places. Whole milliseconds, 100 to 31,536,000,000.
   * @default 300_000
   */
  readonly fairWaitMs?: number | undefined;
}

/** The configuration that all objects of one `redisson()` share. */
export interface RedissonScope extends NameRules {
  /** The session of the Holdfast that runs all requests. */
  readonly session: Session;
  /** Prefix of Holdfast's own keys. */
  readonly prefix: string;
  /** Values for options that a caller of `acquire` omits. */
  readonly defaults: ResolvedOptions;
  /** See `RedissonOptions.publish`. */
  readonly publish: Publish;
  /** See `RedissonOptions.watchdogMs`. */
  readonly watchdogMs: number;
  /** See `RedissonOptions.fairWaitMs`. */
  readonly fairWaitMs: number;
  /** How long the reply to a request is remembered, in ms: longer than Holdfast retries the request. */
  readonly latchMs: number;
  /**
   * Returns the owner id of a claim, as `<uuid>:<number>` like Redisson's `<client>:<thread>`. Each claim has its own,
   * because Redisson counts a second acquire by the same owner as reentrant.
   */
  ownerOf(claimNumber: number): string;
  /** Returns the request id of a claim's release, which is the same for every retry: 32 hexadecimal digits. */
  requestIdOf(claimNumber: number): string;
}

const LONGEST_MS = 31_536_000_000;

/**
 * Checks the options and fills in defaults.
 *
 * @throws TypeError, RangeError  invalid option; the message states its range
 */
export function redissonScope({ session, defaults, prefix }: Internals, options: RedissonOptions): RedissonScope {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options of redisson must be an object; got ${show(options)}`);
  }
  const isCluster = session.store.shardInbox !== undefined;
  const { nameMapper, publish = isCluster ? "both" : "plain", watchdogMs = 30_000, fairWaitMs = 300_000 } = options;
  const known = ["nameMapper", "publish", "watchdogMs", "fairWaitMs"];
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    throw unknownOption(unknown, known);
  }
  if (nameMapper !== undefined && typeof nameMapper !== "function") {
    throw new TypeError(`nameMapper must be a function that maps a name to a name; got ${show(nameMapper)}`);
  }
  if (publish !== "plain" && publish !== "sharded" && publish !== "both") {
    throw new TypeError(`publish must be "plain", "sharded" or "both"; got ${show(publish)}`);
  }
  if (publish === "sharded" && !isCluster) {
    throw new RangeError(
      'publish must be "plain" or "both" without a cluster, because sharded channels have no subscribers there; got "sharded"',
    );
  }
  checkWhole("watchdogMs", watchdogMs, 100, LONGEST_MS);
  checkWhole("fairWaitMs", fairWaitMs, 100, LONGEST_MS);
  const uuid = randomUUID();
  return {
    session,
    defaults,
    prefix,
    nameMapper,
    isCluster,
    publish,
    watchdogMs,
    fairWaitMs,
    latchMs: Math.max(20_000, 5 * session.commandTimeoutMs),
    ownerOf: (claimNumber) => `${uuid}:${claimNumber}`,
    // The first half identifies this client, the second half the claim.
    requestIdOf: (claimNumber) => uuid.replaceAll("-", "").slice(0, 16) + claimNumber.toString(16).padStart(16, "0"),
  };
}
