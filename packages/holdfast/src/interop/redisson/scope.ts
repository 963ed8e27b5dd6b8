/** What all objects of one `redisson()` share: where they are, how they are named, and how they are told of. */

import { randomUUID } from "node:crypto";
import { checkWhole, type Internals, type ResolvedOptions, type Session, show, unknownOption } from "../../internal.js";
import type { NameMapper, NameRules } from "./names.js";

/** Which command the messages of a lock are published with. See `RedissonOptions.publish`. */
export type Publish = "plain" | "sharded" | "both";

/** What `redisson()` can be told; all of it has to agree with how the Java services are configured. */
export interface RedissonOptions {
  /**
   * From the name that a caller gives to the one on the server, as the `NameMapper` of the Java services does it. A prefix
   * belongs here and not into the `keyPrefix` of a client, which does not reach channels and derived names.
   * @default the name as it is
   */
  readonly nameMapper?: NameMapper | undefined;

  /**
   * How waiters are woken: `PUBLISH`, `SPUBLISH`, or both. Redisson chooses by its own configuration, which nobody else can
   * see: on a cluster of Redis 7 and later the sharded one since 3.22, unless `shardedSubscriptionMode` is `OFF`; everywhere
   * else the plain one. A wrong choice does not let two in: waiters of the other side sleep until the lease ends. `"both"`
   * publishes and listens twice. `"sharded"` is for clusters only.
   * @default "plain" on one server and behind Sentinel, "both" on a cluster
   */
  readonly publish?: Publish | undefined;

  /**
   * The shortest `lockWatchdogTimeout` of the Java services. A read lock may not have a longer lease: Redisson cuts the
   * common expiry of all readers to it whenever one of its own is renewed. Whole milliseconds, 100 to 31,536,000,000.
   * @default 30_000
   */
  readonly watchdogMs?: number | undefined;

  /**
   * How long a waiter of a fair lock keeps its place where its caller has set no end to its wait (`waitMs: Infinity`): the
   * `fairLockWaitTimeout` of the Java services. Longer lets a waiter that died hold up those behind it for longer; shorter
   * costs waiters of long-held locks their places. Whole milliseconds, 100 to 31,536,000,000.
   * @default 300_000
   */
  readonly fairWaitMs?: number | undefined;
}

/** See the file header. */
export interface RedissonScope extends NameRules {
  readonly session: Session;
  /** What keys of our own begin with. */
  readonly prefix: string;
  /** For the options of `acquire` that a caller leaves out. */
  readonly defaults: ResolvedOptions;
  readonly publish: Publish;
  readonly watchdogMs: number;
  readonly fairWaitMs: number;
  /** How long an unlock remembers what it did, in ms: longer than anybody sends it again. */
  readonly latchMs: number;
  /**
   * The owner id of a claim: one for each request, since Redisson counts a second acquire of the same one as re-entrance.
   * `<uuid>:<number>`, as Redisson's `<client>:<thread>`.
   */
  ownerOf(claimNumber: number): string;
  /** What names the release of a claim, however often it is sent: 32 hexadecimal digits. */
  requestIdOf(claimNumber: number): string;
}

const LONGEST_MS = 31_536_000_000;

/** @throws TypeError, RangeError  a wrong option; the message names it, its range and what came */
export function redissonScope({ session, defaults, prefix }: Internals, options: RedissonOptions): RedissonScope {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`the options of redisson must be an object; got ${show(options)}`);
  }
  const isCluster = session.store.shardInbox !== undefined;
  const { nameMapper, publish = isCluster ? "both" : "plain", watchdogMs = 30_000, fairWaitMs = 300_000 } = options;
  const known = ["nameMapper", "publish", "watchdogMs", "fairWaitMs"];
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    throw unknownOption(unknown, known);
  }
  if (nameMapper !== undefined && typeof nameMapper !== "function") {
    throw new TypeError(`nameMapper must be a function from a name to a name; got ${show(nameMapper)}`);
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
    // Half of it tells this client from all others, the rest its claims from each other.
    requestIdOf: (claimNumber) => uuid.replaceAll("-", "").slice(0, 16) + claimNumber.toString(16).padStart(16, "0"),
  };
}
