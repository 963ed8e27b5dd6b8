/** Subscriber connections in a cluster that deliver nothing: each is checked and replaced independently. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { GlideClusterClient } from "@valkey/valkey-glide";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import { createHoldfast, type Holdfast, type InboxEvent } from "../../src/index.js";
import { clusterSlot } from "../../src/stores/cluster-slot.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { useClients } from "../faults/topology-scene.js";

const scene = useClients();

let cluster: RedisCluster;
beforeAll(async () => {
  // No test here needs a failover, and a busy machine that stalls for a moment must not cause one.
  cluster = await startCluster({ nodeTimeoutMs: 15_000 });
}, 150_000);
afterAll(() => cluster.stop());

/** Key: the port of the server behind the proxy. */
let proxies: Map<number, TcpProxy>;
let events: InboxEvent[];
beforeEach(async () => {
  proxies = new Map();
  for (const port of cluster.ports) proxies.set(port, await startProxy(port));
  events = [];
  const onEvent = (event: unknown): void => void events.push(event as InboxEvent);
  subscribe("holdfast:inbox", onEvent);
  return async () => {
    unsubscribe("holdfast:inbox", onEvent);
    for (const proxy of proxies.values()) await proxy.close();
  };
});

/** Maps each address that a server announces to the address of its proxy. */
function addressMap(): Record<string, { host: string; port: number }> {
  const behind = [...proxies].map(([port, proxy]) => [`127.0.0.1:${port}`, { host: "127.0.0.1", port: proxy.port }]);
  return Object.fromEntries(behind);
}

const libraries = [
  {
    name: "ioredis",
    async connect(): Promise<{ redis: object; disconnect: () => unknown }> {
      const redis = new Cluster([{ host: "127.0.0.1", port: cluster.ports[0] ?? 0 }], { natMap: addressMap() });
      redis.on("error", () => {});
      return { redis, disconnect: () => redis.disconnect() };
    },
  },
  {
    name: "node-redis",
    async connect(): Promise<{ redis: object; disconnect: () => unknown }> {
      const rootNodes = [{ url: `redis://127.0.0.1:${cluster.ports[0]}` }];
      const redis = createCluster({ rootNodes, nodeAddressMap: addressMap() });
      redis.on("error", () => {});
      await redis.connect();
      return { redis, disconnect: () => redis.destroy() };
    },
  },
];

/** Returns the name of a lock whose slot is on another master than that of `name`. */
async function elsewhere(name: string): Promise<string> {
  const home = (await cluster.masterOf(clusterSlot(`{${name}}`))).port;
  for (let number = 0; ; number += 1) {
    const other = `${name}:${number}`;
    if ((await cluster.masterOf(clusterSlot(`{${other}}`))).port !== home) return other;
  }
}

/** Ids of the connections that are subscribed to any channel on the master of that lock. */
async function subscribersAt(name: string): Promise<string[]> {
  const master = await cluster.masterOf(clusterSlot(`{${name}}`));
  const list = String(await master.command("CLIENT", "LIST", "TYPE", "pubsub"));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id = ""]) => id);
}

/** Ids of the connections that are subscribed to a sharded channel there, as inboxes are. */
async function inboxesAt(name: string): Promise<string[]> {
  const master = await cluster.masterOf(clusterSlot(`{${name}}`));
  const list = String(await master.command("CLIENT", "LIST", "TYPE", "pubsub"));
  return [...list.matchAll(/^id=(\d+).* ssub=[1-9]/gm)].map(([, id = ""]) => id);
}

/** Acquires the lock, and queues `waiter` for it. */
async function contended(name: string, waiter: Holdfast): Promise<{ release(): Promise<void> }> {
  const redis = new Cluster([{ host: "127.0.0.1", port: cluster.ports[0] ?? 0 }]);
  redis.on("error", () => {});
  const holder = createHoldfast({ redis, failoverGrace: "off" });
  onTestFinished(async () => {
    await holder.close();
    redis.disconnect();
  });
  const lease = await holder.mutex(name).acquire({ leaseMs: 4 * LONG_MS });
  const waiting = waiter.mutex(name).acquire({ waitMs: 4 * LONG_MS });
  await until(async () => (await holder.mutex(name).inspect()).waiterCount === 1, "a waiter");
  return {
    async release() {
      expect(await lease.release()).toBe("released");
      expect(await (await waiting).release()).toBe("released");
    },
  };
}

describe.each(libraries)("$name", ({ connect }) => {
  test.each(["delivers nothing", "is a black hole", "was closed by the server"])(
    "a waiter replaces only the subscriber connection that %s, and is then notified",
    async (how) => {
      const { redis, disconnect } = await connect();
      const waiter = createHoldfast({ redis: redis as never, failoverGrace: "off" });
      onTestFinished(async () => {
        await waiter.close();
        await disconnect();
      });
      const { name } = scene;
      const other = await elsewhere(name);
      const [broken, sound] = [await contended(name, waiter), await contended(other, waiter)];
      const port = (await cluster.masterOf(clusterSlot(`{${name}}`))).port;
      const proxy = proxies.get(port);
      if (proxy === undefined) throw new Error("there is a proxy before each server");
      const subscriptions = proxy.counts.connections;
      const deadInboxes = await inboxesAt(name);
      expect(deadInboxes.length).toBeGreaterThan(0);
      const soundSubscribers = await subscribersAt(other);
      expect(soundSubscribers.length).toBeGreaterThan(0);
      if (how === "delivers nothing") {
        proxy.dropMessages(true);
        await until(() => proxy.counts.connections > subscriptions, "another connection");
        proxy.dropMessages(false);
        await until(() => events.some(({ state }) => state === "hears"), "an echo");
        for (const { connection } of events) expect(connection).toMatch(/^sharded /);
        expect(new Set(events.map(({ connection }) => connection)).size).toBe(1);
      } else {
        expect(proxy.blackHole(how === "is a black hole" ? "silent" : "server")).toBeGreaterThan(0);
        await until(() => proxy.counts.connections > subscriptions, "another connection");
      }
      const before = proxy.counts.messages;
      // Behind a silent black hole the server keeps its end open and counts the dead connection as a subscriber.
      await until(
        async () => (await inboxesAt(name)).some((id) => !deadInboxes.includes(id)),
        "the subscription of the new connection",
      );
      // The client's own channel may have moved there from the broken connection.
      expect(await subscribersAt(other)).toEqual(expect.arrayContaining(soundSubscribers));
      await broken.release();
      // The message may arrive after the reply to the release, because it uses another connection.
      await until(() => proxy.counts.messages > before, "the message of the grant");
      await sound.release();
    },
    150_000,
  );
});

test("a GLIDE waiter whose subscriber receives nothing replaces it and is granted", async () => {
  const addresses = cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
  const make = () => GlideClusterClient.createClient({ addresses, requestTimeout: 2_000 });
  const redis = await make();
  const subscribers: GlideClusterClient[] = [];
  const subscriber = async (): Promise<GlideClusterClient> => {
    const made = await make();
    // The first subscriber drops every message, as a dead connection would.
    if (subscribers.length === 0) made.getPubSubMessage = () => new Promise(() => {});
    subscribers.push(made);
    return made;
  };
  const waiter = createHoldfast({ redis, subscriber, failoverGrace: "off" });
  onTestFinished(async () => {
    await waiter.close();
    redis.close();
  });
  const lock = await contended(scene.name, waiter);
  await until(() => events.some(({ state }) => state === "hears"), "an echo to another subscriber");
  expect(subscribers.length).toBe(2);
  await lock.release();
}, 150_000);
