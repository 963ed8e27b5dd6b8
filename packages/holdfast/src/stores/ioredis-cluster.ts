/** The store for a Cluster client of ioredis 5 or 6, or of iovalkey. The caller owns and closes the client. */

import type { Store } from "../core/store.js";
import { clientStore, type GrantConditions, overNodes, sharedWatch } from "./client-store.js";
import { ClusterFailoverGuard } from "./cluster-failover-guard.js";
import type { ClusterNodes, NodeSubscriber, NodeSubscriberEvents } from "./cluster-hub.js";
import { clusterSlot } from "./cluster-slot.js";
import { messageOf, placeOf } from "./failure.js";
import { inputsOf, ioredisTimeouts, LISTENING } from "./ioredis.js";
import { onEach } from "./run-on-each.js";
import type { ScriptClient } from "./script-runner.js";
import { allThatAnswer } from "./timeout.js";

/** The part of a node's client that this store uses. `IoredisClient` explains why it is not the library's own type. */
export interface IoredisNode {
  readonly status: string;
  readonly options: { readonly host?: string; readonly port?: number };
  readonly stream?: { unref?(): unknown };
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): Promise<unknown>;
  script(subcommand: "LOAD", source: string): Promise<unknown>;
  duplicate(overrides: object): IoredisNode;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  ssubscribe(channel: string): Promise<unknown>;
  sunsubscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: (...values: string[]) => void): unknown;
}

/** The part of the cluster client that this store uses. */
export interface IoredisCluster {
  readonly status: string;
  /** Addresses of the servers of each slot, the master first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  readonly options?: { readonly redisOptions?: Parameters<typeof ioredisTimeouts>[0] };
  nodes(role: "master"): IoredisNode[];
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): Promise<unknown>;
  exists(key: string): Promise<unknown>;
  on(event: string, listener: (...values: unknown[]) => void): unknown;
  off(event: string, listener: (...values: unknown[]) => void): unknown;
}

/** Timeout for each server, in ms. It is short, because any of them may be down. */
const ONE_OF_MANY_MS = 500;
/** The error that older versions emit when the server ends a subscription by itself. */
const UNASKED = /Command queue state error/;

/** The last error that each client reported for one of its servers; empty once the client is ready again. */
const lastErrors = new WeakMap<IoredisCluster, { error: string }>();

/**
 * Creates a store on one Cluster client of ioredis or iovalkey, which follows moved slots and new masters, and resends
 * commands.
 */
export function ioredisClusterStore(redis: IoredisCluster, conditions: GrantConditions = {}): Store {
  const said = lastErrors.get(redis) ?? { error: "" };
  lastErrors.set(redis, said);

  const client: ScriptClient = {
    evalsha: (sha1, keys, args) => redis.evalsha(sha1, keys.length, ...inputsOf(keys, args)),
    load(source, [key], attempt) {
      const masters = redis.nodes("master");
      // While a slot moves, the slot table names only the old owner, so a retry loads the script on all masters.
      const owner = key === undefined || attempt > 1 ? undefined : redis.slots[clusterSlot(key)]?.[0];
      const reached = masters.filter((master) => owner === undefined || addressOf(master) === owner);
      return allThatAnswer(
        (reached.length === 0 ? masters : reached).map((master) => master.script("LOAD", source)),
        ONE_OF_MANY_MS,
      );
    },
    evalshaOnEach: (sha1, args, timeoutMs) =>
      allThatAnswer(
        redis.nodes("master").map((master) => master.evalsha(sha1, 0, ...inputsOf([], args))),
        timeoutMs,
      ),
    isCluster: true,
    isClosed: () => redis.status === "end",
    noConnection: () =>
      redis.status === "ready"
        ? undefined
        : placeOf({ host: "any server of the cluster", port: undefined }, said.error),
    // The client does not report when it resends commands after a lost connection. NaN never equals itself, so every
    // call counts as possibly resent.
    losses: () => Number.NaN,
  };

  function watch(onBack: () => void): () => void {
    if (redis.status === "ready") said.error = "";
    // These events count as reconnects: the client removes a node immediately when its connection is lost, and resends
    // commands in flight to the slot's new owner.
    redis.on("-node", onBack);
    redis.on("+node", onBack);
    const onError = (error: unknown, address: unknown): void => {
      said.error = `${String(address)}: ${messageOf(error)}`;
    };
    const onReady = (): void => {
      said.error = "";
    };
    redis.on("node error", onError);
    redis.on("ready", onReady);
    return () => {
      redis.off("ready", onReady);
      redis.off("node error", onError);
      redis.off("-node", onBack);
      redis.off("+node", onBack);
    };
  }

  const store = clientStore({
    kind: "ioredis",
    client,
    inboxes: overNodes(redis, ioredisNodes(redis)),
    watch: sharedWatch(redis, watch),
    conditions,
    failoverGuard: (grace, run, client) => new ClusterFailoverGuard(grace, run, client),
    clientTimeouts: () => ioredisTimeouts(redis.options?.redisOptions),
  });
  return { ...store, runOnEach: onEach(client) };
}

function ioredisNodes(redis: IoredisCluster): ClusterNodes {
  return {
    ownerOf: (slot) => redis.slots[slot]?.[0],
    masters: () => redis.nodes("master").map(addressOf),
    // If the slot has moved, a command with a key in it makes the server redirect the client, which then updates its
    // slot table.
    refresh: (channel) => redis.exists(channel),
    openSubscriber(address, events) {
      const masters = redis.nodes("master");
      const like = masters.find((master) => addressOf(master) === address) ?? masters[0];
      if (like === undefined) throw new Error("the client has no connection to any master");
      const colon = address.lastIndexOf(":");
      const [host, port] = [address.slice(0, colon), Number(address.slice(colon + 1))];
      // Channel names have no key prefix. The client must not reconnect, because the hub opens a new connection.
      return ioredisNodeSubscriber(
        like.duplicate({ ...LISTENING, host, port, keyPrefix: "", readOnly: false, retryStrategy: null }),
        events,
      );
    },
  };
}

function addressOf({ options: { host, port } }: IoredisNode): string {
  return `${host}:${port}`;
}

function ioredisNodeSubscriber(subscriber: IoredisNode, events: NodeSubscriberEvents): NodeSubscriber {
  const refusals = new Set<(cause: Error) => void>();
  let isMoving = false;
  /**
   * Handles the event that a slot has moved. The event does not name the channel. It also occurs if the server refuses
   * a subscription. Some versions then never settle the promise of that subscription, so all pending subscriptions are
   * rejected here.
   */
  const onMoved = (): void => {
    for (const refuse of refusals)
      refuse(new Error("the slot moved to another server while the subscription was pending"));
    if (isMoving) return;
    isMoving = true;
    setImmediate(() => {
      isMoving = false;
      events.onMoved();
    });
  };
  subscriber.on("error", (error) => {
    if (UNASKED.test(String(error))) onMoved();
  });
  subscriber.on("moved", onMoved);
  subscriber.on("message", (channel = "", message = "") => events.onMessage(channel, message));
  subscriber.on("smessage", (channel = "", message = "") => events.onMessage(channel, message));
  subscriber.on("close", () => events.onEnd());
  subscriber.on("end", () => events.onEnd());
  // An idle subscriber connection must not keep the process alive. Waiters keep it alive with their own timers.
  subscriber.on("connect", () => subscriber.stream?.unref?.());
  subscriber.stream?.unref?.();
  return {
    subscribe(channel, isSharded) {
      if (!isSharded) return subscriber.subscribe(channel);
      return new Promise((resolve, reject) => {
        refusals.add(reject);
        subscriber
          .ssubscribe(channel)
          .then(resolve, reject)
          .finally(() => refusals.delete(reject));
      });
    },
    unsubscribe: (channel, isSharded) =>
      isSharded ? subscriber.sunsubscribe(channel) : subscriber.unsubscribe(channel),
    ping: () => subscriber.ping(),
    close() {
      // Disconnecting an ended client would start a timer that keeps the process alive for two seconds.
      if (subscriber.status !== "end") subscriber.disconnect();
    },
  };
}
