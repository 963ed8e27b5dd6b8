/** The store for a cluster client of node-redis 4 to 6. The caller owns and closes the client. */

import type { Store } from "../core/store.js";
import { clientStore, type GrantConditions, overNodes, sharedWatch } from "./client-store.js";
import { ClusterFailoverGuard } from "./cluster-failover-guard.js";
import type { ClusterNodes, NodeSubscriber, NodeSubscriberEvents } from "./cluster-hub.js";
import { clusterSlot } from "./cluster-slot.js";
import { listeningTimeout } from "./node-redis.js";
import { onEach } from "./run-on-each.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { allThatAnswer, within } from "./timeout.js";

type Listener = (message: string, channel: string) => void;

/** The part of a node's client that this store uses. `IoredisClient` explains why it is not the library's own type. */
export interface NodeRedisNode {
  readonly isOpen?: boolean | undefined;
  readonly options?: {
    readonly pingInterval?: number | undefined;
    readonly socket?: { readonly socketTimeout?: number | undefined };
  };
  evalSha(sha1: string, inputs: { keys: string[]; arguments: string[] }): Promise<unknown>;
  scriptLoad(source: string): Promise<unknown>;
  duplicate(overrides: object): NodeRedisNode;
  connect(): Promise<unknown>;
  unref(): unknown;
  ping(): Promise<unknown>;
  subscribe(channel: string, listener: Listener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sSubscribe(channel: string, listener: Listener): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
  /** In versions 5 and 6. */
  destroy?(): unknown;
  /** Used in version 4. */
  disconnect(): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
}

/** A master as the cluster client lists it. */
export interface NodeRedisMaster {
  readonly address: string;
  readonly client?: NodeRedisNode | Promise<NodeRedisNode> | undefined;
}

/** The part of the cluster client that this store uses. */
export interface NodeRedisCluster {
  readonly isOpen?: boolean | undefined;
  readonly slots: readonly ({ readonly master: NodeRedisMaster } | undefined)[];
  readonly masters: readonly NodeRedisMaster[];
  nodeClient(master: NodeRedisMaster): NodeRedisNode | Promise<NodeRedisNode>;
  evalSha(sha1: string, inputs: { keys: string[]; arguments: string[] }): Promise<unknown>;
  exists(key: string): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Timeout for each server, in ms. It is short, because any of them may be down. */
const ONE_OF_MANY_MS = 500;

/**
 * Creates a store on one node-redis cluster client, which follows moved slots and new masters, and never sends a
 * command twice.
 */
export function nodeRedisClusterStore(redis: NodeRedisCluster, conditions: GrantConditions = {}): Store {
  const masterOf = (key: string): NodeRedisMaster | undefined => redis.slots[clusterSlot(key)]?.master;
  const clientOf = async (master: NodeRedisMaster): Promise<NodeRedisNode> => redis.nodeClient(master);

  const client: ScriptClient = {
    async evalsha(sha1, keys, args) {
      const inputs = { keys: [...keys], arguments: args.map(toArgument) };
      if (keys.length > 0) return redis.evalSha(sha1, inputs);
      // Choose a master, because the client may send a script without keys to a replica, where it cannot be loaded.
      const master = masterOf(sha1) ?? redis.masters[0];
      return master === undefined ? redis.evalSha(sha1, inputs) : (await clientOf(master)).evalSha(sha1, inputs);
    },
    load(source, [key], attempt) {
      const load = async (master: NodeRedisMaster): Promise<unknown> => (await clientOf(master)).scriptLoad(source);
      // While a slot moves, the slot table names only the old owner, so a retry loads the script on all masters.
      const owner = key === undefined || attempt > 1 ? undefined : masterOf(key);
      return allThatAnswer((owner === undefined ? redis.masters : [owner]).map(load), ONE_OF_MANY_MS);
    },
    evalshaOnEach(sha1, args, timeoutMs) {
      const inputs = { keys: [], arguments: args.map(toArgument) };
      const ask = async (master: NodeRedisMaster): Promise<unknown> => (await clientOf(master)).evalSha(sha1, inputs);
      return allThatAnswer(redis.masters.map(ask), timeoutMs);
    },
    isCluster: true,
    isClosed: () => redis.isOpen === false,
    losses: () => 0,
  };

  function watch(onBack: () => void): () => void {
    // Version 4 does not emit this event.
    redis.on("node-ready", onBack);
    return () => void redis.off("node-ready", onBack);
  }

  const store = clientStore({
    kind: "node-redis",
    client,
    inboxes: overNodes(redis, nodeRedisNodes(redis)),
    watch: sharedWatch(redis, watch),
    conditions,
    failoverGuard: (grace, run, client) => new ClusterFailoverGuard(grace, run, client),
  });
  return { ...store, runOnEach: onEach(client) };
}

function nodeRedisNodes(redis: NodeRedisCluster): ClusterNodes {
  return {
    ownerOf: (slot) => redis.slots[slot]?.master.address,
    masters: () => redis.masters.map(({ address }) => address),
    // If the slot has moved, a command with a key in it makes the server redirect the client, which then reloads its
    // slot table.
    refresh: (channel) => redis.exists(channel),
    async openSubscriber(address, events) {
      const master = redis.masters.find((one) => one.address === address);
      if (master === undefined) throw new Error("the client no longer lists this master");
      // The client of a master that is down tries to connect forever, so the wait for it is limited.
      const like = await within(ONE_OF_MANY_MS, Promise.resolve(master.client ?? redis.nodeClient(master)));
      const { pingInterval, socket: own } = like.options ?? {};
      const socketTimeout = listeningTimeout(pingInterval, own?.socketTimeout);
      const socket = { ...own, socketTimeout, reconnectStrategy: false };
      const overrides = { socket, readonly: false, disableOfflineQueue: false, commandOptions: undefined };
      return nodeRedisNodeSubscriber(like.duplicate({ ...overrides, clientSideCache: undefined }), events);
    },
  };
}

function nodeRedisNodeSubscriber(subscriber: NodeRedisNode, events: NodeSubscriberEvents): NodeSubscriber {
  // Without a listener, an error would end the process.
  subscriber.on("error", () => events.onEnd());
  subscriber.on("end", () => events.onEnd());
  subscriber.on("sharded-channel-moved", () => events.onMoved());
  // An idle subscriber connection must not keep the process alive. Waiters keep it alive with their own timers.
  subscriber.unref();
  const connected = Promise.resolve(subscriber.connect());
  connected.catch(() => events.onEnd());
  const onMessage: Listener = (message, channel) => events.onMessage(channel, message);
  return {
    async subscribe(channel, isSharded) {
      await connected;
      await (isSharded ? subscriber.sSubscribe(channel, onMessage) : subscriber.subscribe(channel, onMessage));
    },
    unsubscribe: (channel, isSharded) =>
      isSharded ? subscriber.sUnsubscribe(channel) : subscriber.unsubscribe(channel),
    ping: () => subscriber.ping(),
    async close() {
      if (subscriber.isOpen === false) return;
      await (subscriber.destroy === undefined ? subscriber.disconnect() : subscriber.destroy());
    },
  };
}
