/** Holdfast on a cluster of node-redis 4 to 6 that the caller owns and closes. */

import type { Store } from "../core/store.js";
import { clientStore, overSharedNodes, type Terms } from "./client-store.js";
import type { ClusterNodes, NodeSubscriber, NodeSubscriberEvents } from "./cluster-hub.js";
import { clusterSlot } from "./cluster-slot.js";
import { listeningTimeout } from "./node-redis.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { sharedWatch } from "./shared-watch.js";
import { allThatAnswer, within } from "./timeout.js";

type Listener = (message: string, channel: string) => void;

/** What this store uses of a node's client. See IoredisClient for why it is not the library's own type. */
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
  /** 5 and 6. */
  destroy?(): unknown;
  /** 4. */
  disconnect(): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
}

/** A master as the cluster's client lists it. */
export interface NodeRedisMaster {
  readonly address: string;
  readonly client?: NodeRedisNode | Promise<NodeRedisNode> | undefined;
}

/** What this store uses of the cluster's client. */
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

/** Longest wait for one of several servers, any of which may be down. */
const ONE_OF_MANY_MS = 500;

/** A store on one cluster client of node-redis. The client follows moved slots and new masters, and never sends twice. */
export function nodeRedisClusterStore(redis: NodeRedisCluster, terms: Terms = {}): Store {
  const masterOf = (key: string): NodeRedisMaster | undefined => redis.slots[clusterSlot(key)]?.master;
  const clientOf = async (master: NodeRedisMaster): Promise<NodeRedisNode> => redis.nodeClient(master);

  const client: ScriptClient = {
    async evalsha(sha1, keys, args) {
      const inputs = { keys: [...keys], arguments: args.map(toArgument) };
      if (keys.length > 0) return redis.evalSha(sha1, inputs);
      // A script without keys may run anywhere, but on a replica it could not be loaded.
      const master = masterOf(sha1) ?? redis.masters[0];
      return master === undefined ? redis.evalSha(sha1, inputs) : (await clientOf(master)).evalSha(sha1, inputs);
    },
    load(source, [key], attempt) {
      const load = async (master: NodeRedisMaster): Promise<unknown> => (await clientOf(master)).scriptLoad(source);
      // Whom the client was sent on to, while a slot moves, is not in its table.
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
    // Version 4 does not tell.
    redis.on("node-ready", onBack);
    return () => void redis.off("node-ready", onBack);
  }

  return clientStore({
    kind: "node-redis",
    client,
    inboxes: overSharedNodes(redis, nodeRedisNodes(redis)),
    watch: sharedWatch(redis, watch),
    terms,
  });
}

function nodeRedisNodes(redis: NodeRedisCluster): ClusterNodes {
  return {
    ownerOf: (slot) => redis.slots[slot]?.master.address,
    masters: () => redis.masters.map(({ address }) => address),
    // Any command with a key of that slot: the client is told where it is, and looks up all of them.
    refresh: (channel) => redis.exists(channel),
    async openSubscriber(address, events) {
      const master = redis.masters.find((one) => one.address === address);
      if (master === undefined) throw new Error("the client knows no such master");
      // The client of a master that is down connects for ever; one that is just like it need not be waited for.
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
  // Without a listener an error ends the process.
  subscriber.on("error", () => events.onEnd());
  subscriber.on("end", () => events.onEnd());
  subscriber.on("sharded-channel-moved", () => events.onMoved());
  // Who waits has a timer of its own. An idle subscriber connection must not keep the process alive.
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
