/** Sharded channels, which clusters have since Redis 7: where inboxes are subscribed, and what is delivered. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { clusterSlot } from "../../src/stores/cluster-slot.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { clusters, olderClusters, useClients } from "../faults/topology-scene.js";

/** GLIDE takes some seconds to follow a moved slot, and more on a busy machine. */
async function inTheEnd(condition: () => Promise<boolean>, what: string): Promise<void> {
  await until(condition, what).catch(() => until(condition, what));
}

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 150_000);
afterAll(() => cluster.stop());

const scene = useClients();

test("a subscriber on a replica is not counted, and receives no grant", async () => {
  const { name } = scene;
  const [library] = clusters;
  if (library === undefined) throw new Error("there are several libraries");
  const holdfast = await scene.client(library, cluster.ports);
  const lease = await holdfast.mutex(name).acquire();
  const channel = `hf:in:{${name}}:abcdefghijklmnop`;
  const master = await cluster.masterOf(clusterSlot(channel));
  const [replica] = await cluster.replicasOf(master);
  const listener = new Redis({ port: replica?.port ?? 0 });
  onTestFinished(() => listener.disconnect());
  const heard: string[] = [];
  listener.on("smessage", (_channel, message) => heard.push(message));
  await listener.ssubscribe(channel);
  await master.command("ZADD", `hf:mutex:{${name}}:queue`, 1, "abcdefghijklmnop/1/30000/1");
  expect(await lease.release()).toBe("released");
  expect((await holdfast.mutex(name).inspect()).holders).toEqual([]);
  // Messages arrive in order, so any message of the script would arrive before this one.
  await master.command("SPUBLISH", channel, "end");
  await until(() => heard.includes("end"), "the end");
  expect(heard).toEqual(["end"]);
});

// A GLIDE client is subscribed to one kind of channel only.
test.each(clusters.filter(({ name }) => name !== "GLIDE"))(
  "a store can subscribe to one channel as plain and as sharded at the same time: $name",
  async (library) => {
    const { options, disconnect } = await library.connect(cluster.ports);
    const store = storeFor(options.redis);
    onTestFinished(async () => {
      await store.close();
      await disconnect();
    });
    const channel = `both:{${scene.name}}`;
    const heard = new Set<string>();
    const plain = await store.inbox(channel, (message) => heard.add(message), LONG_MS);
    const sharded = await store.shardInbox?.(channel, (message) => heard.add(message), LONG_MS);
    const master = await cluster.masterOf(clusterSlot(channel));
    await master.command("PUBLISH", channel, "plain");
    await master.command("SPUBLISH", channel, "sharded");
    await until(() => heard.size === 2, "both sorts");
    // Closing one must not close the other, which a client library may mistake for the same subscription.
    await sharded?.close();
    await master.command("PUBLISH", channel, "plain again");
    await until(() => heard.has("plain again"), "the sort that is left");
    const again = await store.shardInbox?.(channel, (message) => heard.add(message), LONG_MS);
    await plain.close();
    await master.command("SPUBLISH", channel, "sharded again");
    await until(() => heard.has("sharded again"), "the sort that is left");
    await again?.close();
    expect(await master.command("PUBSUB", "SHARDNUMSUB", channel)).toEqual([channel, 0]);
  },
);

/** The older clients run all tests in the nightly run. */
const thorough = process.env.HOLDFAST_TESTS === "all" ? [...clusters, ...olderClusters] : clusters;

describe.each(thorough)("$name", (library) => {
  test("an inbox is subscribed at each new master of its slot and receives messages there", async () => {
    const { options, disconnect } = await library.connect(cluster.ports);
    const { redis, subscriber } = options;
    const store = storeFor(redis, subscriber === undefined ? {} : { subscriber: () => subscriber(0) });
    onTestFinished(async () => {
      await store.close();
      await disconnect();
      await cluster.settled();
    });
    const channel = `in:{${scene.name}}:somebody`;
    const slot = clusterSlot(channel);
    const heard: string[] = [];
    let told = 0;
    store.onReconnect((connection) => {
      if (connection === "inbox") told += 1;
    });
    await store.shardInbox?.(channel, (message) => heard.push(message), LONG_MS);
    const listeners = async (): Promise<unknown> =>
      (await cluster.masterOf(slot)).command("PUBSUB", "SHARDNUMSUB", channel);
    expect(await listeners()).toEqual([channel, 1]);
    for (const move of ["failover", "slot"] as const) {
      const from = await cluster.masterOf(slot);
      const [to] = (await cluster.masters()).filter(({ id }) => id !== from.id);
      if (to === undefined) throw new Error("there are three masters");
      if (move === "failover") await cluster.failover(slot);
      else await cluster.moveSlot(slot, to);
      await inTheEnd(async () => (await cluster.masterOf(slot)).id !== from.id, "another master");
      await inTheEnd(async () => String(await listeners()) === `${channel},1`, "the new master to count it");
      // Not every node knows the new master yet.
      await inTheEnd(async () => {
        await (await cluster.masterOf(slot)).command("SPUBLISH", channel, move).catch(() => {});
        return heard.includes(move);
      }, "a message by the new master");
      // GLIDE follows the slot by itself, and does not report when.
      if (library.name !== "GLIDE") await until(() => told > 0, "the word that it hears again");
      told = 0;
      if (move === "slot") await cluster.moveSlot(slot, from);
    }
  }, 150_000);
});
