/** Chooses the store of a Holdfast, and closes it with its last user. */
import { UnsupportedError } from "./core/errors.js";
import { show } from "./core/keys.js";
import type { Store } from "./core/store.js";
import type { HoldfastOptions } from "./holdfast-options.js";
import { failoverGrace as graceFor, quorumGrace } from "./server/lineage.js";
import { storeFor } from "./stores/detect.js";

/**
 * Returns the store that all locks use, or the stores of the quorum if `redlock` is given.
 *
 * @throws TypeError, RangeError  not exactly one of `redis`, `store` and `redlock`, an invalid value, or options that exclude
 *                                each other
 * @throws UnsupportedError       `failoverGrace` or `replicas` with a store or client that does not support it
 */
export function chooseStores(options: HoldfastOptions): Store | readonly Store[] {
  const { redis, store, redlock, subscriber, prefix = "hf", failoverGrace = "auto", replicas } = options;
  const given = Object.entries({ redis, store, redlock }).filter(([, value]) => value !== undefined);
  if (given.length !== 1) {
    const names = given.map(([name]) => name).join(" and ");
    throw new TypeError(`createHoldfast needs exactly one of redis, store and redlock; got ${names || "none"}`);
  }
  if (redlock !== undefined) {
    checkServers(redlock);
    if (options.failoverGrace === "off" || options.failoverGrace === "auto") {
      throw new TypeError(
        `failoverGrace must be "strict" with redlock, or absent: a server that restarts without its grants must not vote; got ${show(failoverGrace)}`,
      );
    }
    if (replicas !== undefined) {
      throw new TypeError(
        "replicas cannot be given with redlock: its servers are independent, and have no replicas to wait for",
      );
    }
    const servers = redlock.map((server, index) =>
      storeFor(server, {
        subscriber: subscriber && (() => subscriber(index)),
        conditions: { grace: quorumGrace(prefix), replicas: undefined },
      }),
    );
    const clustered = servers.findIndex(({ shardInbox }) => shardInbox !== undefined);
    if (clustered >= 0) {
      throw new TypeError(`redlock must have clients of independent servers; client ${clustered} is a cluster client`);
    }
    return servers;
  }
  const chosen = storeFor(redis ?? store, {
    subscriber: subscriber && (() => subscriber(0)),
    conditions: { grace: graceFor(failoverGrace, prefix), replicas },
  });
  if (failoverGrace === "strict" && chosen.lineageKey?.("") === undefined) {
    throw new UnsupportedError(
      "failoverGrace",
      'The option `failoverGrace: "strict"` needs a client: Holdfast cannot check the server behind a custom store.',
    );
  }
  if (replicas !== undefined && chosen.confirmsGrants !== true) {
    throw new UnsupportedError(
      "replicas",
      "The option `replicas` needs a client; it does not work with a custom store.",
    );
  }
  return chosen;
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
    throw new RangeError(
      `${range}: with fewer than ${FEWEST_SERVERS}, no majority is left when one fails; got ${length}`,
    );
  }
  if (length % 2 === 0) {
    throw new RangeError(
      `${range}: ${length} servers tolerate no more failures than ${length - 1}, and two callers can split the votes evenly; got ${length}`,
    );
  }
  const twice = servers.findIndex((server, index) => servers.indexOf(server) !== index);
  if (twice >= 0) {
    throw new TypeError(
      `redlock must have a different client for each server, because a server has one vote; client ${twice} is the same as client ${servers.indexOf(servers[twice])}`,
    );
  }
}

/**
 * How many open Holdfasts use each store. All copies of this library in the process share the count: a duplicate install, or a
 * module that was loaded again.
 */
const USERS = Symbol.for("holdfast.storeUsers");
const inProcess = globalThis as { [USERS]?: WeakMap<Store, number> };
const users = inProcess[USERS] ?? new WeakMap<Store, number>();
inProcess[USERS] = users;

/** Registers one more Holdfast on this store. @returns unregisters it; the last one closes the store */
export function shareStore(store: Store): () => Promise<void> {
  users.set(store, (users.get(store) ?? 0) + 1);
  return async () => {
    const left = (users.get(store) ?? 1) - 1;
    users.set(store, left);
    if (left === 0) await store.close();
  };
}
