/** Chooses the store of a Holdfast. */
import { show } from "./core/keys.js";
import type { Store } from "./core/store.js";
import type { HoldfastOptions } from "./holdfast-options.js";
import { checkConditions, conditionsOf } from "./on-one-server.js";
import { quorumGrace } from "./quorum-grace.js";
import { inspectSlot } from "./server/shard.js";
import { storeFor } from "./stores/detect.js";

/** The options that say how to reach the server. */
export const WAYS = ["redis", "store", "redlock", "subscriber"] as const;

/** Refuses anything but an options object. @throws TypeError */
export function checkIsOptions(options: unknown): void {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`createHoldfast needs an object with redis, store or redlock; got ${show(options)}`);
  }
  const methods = Object.entries({ redis: ["evalsha", "evalSha", "customCommand"], store: ["onReconnect"] });
  for (const [option, names] of methods) {
    if (!names.some((name) => typeof Reflect.get(options, name) === "function")) continue;
    throw new TypeError(
      `createHoldfast takes an options object, but got a ${option === "redis" ? "client" : "store"}: write createHoldfast({ ${option}: … })`,
    );
  }
}

/**
 * Returns the store that all locks use, or the stores of the quorum if `redlock` is given.
 *
 * @throws TypeError, RangeError  not exactly one of `redis`, `store` and `redlock`, an invalid value, or options that
 *                                cannot be combined
 * @throws UnsupportedError       `failoverGrace` or `replicas` with a store or client that does not support it
 */
export function chooseStores(options: HoldfastOptions): Store | readonly Store[] {
  const { redis, store, redlock, subscriber, prefix = "hf", failoverGrace, replicas } = options;
  const given = Object.entries({ redis, store, redlock }).filter(([, value]) => value !== undefined);
  if (given.length !== 1) {
    const names = given.map(([name]) => name).join(" and ");
    throw new TypeError(`createHoldfast needs exactly one of redis, store and redlock; got ${names || "none"}`);
  }
  if (redlock !== undefined) {
    checkServers(redlock);
    if (failoverGrace === "off" || failoverGrace === "auto") {
      throw new TypeError(
        `failoverGrace must be "strict" or omitted with redlock, because a server that restarts without its grants must not vote; got ${show(failoverGrace)}`,
      );
    }
    if (replicas !== undefined) {
      throw new TypeError(
        "replicas cannot be combined with redlock: its servers are independent and have no replicas to wait for",
      );
    }
    const servers = redlock.map((server, index) =>
      storeFor(server, {
        option: `redlock[${index}]`,
        subscriber: subscriber && (() => subscriber(index)),
        conditions: { grace: quorumGrace(prefix), replicas: undefined },
      }),
    );
    const clustered = servers.findIndex(({ shardInbox }) => shardInbox !== undefined);
    if (clustered >= 0) {
      throw new TypeError(`redlock needs clients of independent servers; client ${clustered} is a cluster client`);
    }
    return servers;
  }
  const chosen = storeFor(redis ?? store, {
    option: redis === undefined ? "store" : "redis",
    subscriber: subscriber && (() => subscriber(0)),
    conditions: conditionsOf(options, inspectSlot),
  });
  return checkConditions(chosen, options);
}

const FEWEST_SERVERS = 3;
const MOST_SERVERS = 9;

/**
 * Checks the servers of a quorum.
 *
 * @throws TypeError, RangeError  not an array of 3, 5, 7 or 9 different servers
 */
function checkServers(servers: unknown): void {
  if (!Array.isArray(servers)) {
    throw new TypeError(`redlock must be an array of clients or stores; got ${show(servers)}`);
  }
  const { length } = servers;
  const range = `redlock must have ${FEWEST_SERVERS}, 5, 7 or ${MOST_SERVERS} servers`;
  if (length < FEWEST_SERVERS || length > MOST_SERVERS) {
    const why =
      length < FEWEST_SERVERS ? `: with fewer than ${FEWEST_SERVERS}, no majority is left when one fails` : "";
    throw new RangeError(`${range}${why}; got ${length}`);
  }
  if (length % 2 === 0) {
    throw new RangeError(
      `${range}: ${length} servers tolerate no more failures than ${length - 1} do, and two callers can split the votes evenly; got ${length}`,
    );
  }
  const twice = servers.findIndex((server, index) => servers.indexOf(server) !== index);
  if (twice >= 0) {
    throw new TypeError(
      `redlock must have a different client for each server, because a server has one vote; client ${twice} is the same as client ${servers.indexOf(servers[twice])}`,
    );
  }
}
