/** The servers of a run: who is master of what, how replication is cut, and how a master dies. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type RedisCluster, startCluster } from "../servers/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import type { RedisServer } from "../servers/redis-server.js";

/** A server with the name by which its topology knows it. */
export interface Node extends RedisServer {
  readonly id: string;
}

/** See the file header. */
export interface Stage {
  readonly topology: "sentinel" | "cluster";
  /** Where clients begin. */
  readonly ports: readonly number[];
  readonly masterName: string;
  /** Names of locks, spread over all masters. */
  readonly names: readonly string[];
  /** The masters, each with the locks that are on it. */
  shards(): Promise<{ readonly master: Node; readonly names: readonly string[] }[]>;
  replicasOf(master: Node): Promise<Node[]>;
  masterOf(name: string): Promise<Node>;
  readonly nodes: readonly Node[];
  /** Starts a master that died again: it follows its successor. */
  restart(master: Node, successor: Node): Promise<void>;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Names of locks for each master. */
const NAMES_PER_SHARD = 3;

/** On a busy machine a slow master must not count as dead, or the sentinels would promote a second one. */
const DOWN_AFTER_MS = 1_500;

/** A master with two replicas, and three sentinels. */
export async function sentinelStage(): Promise<Stage> {
  const topology: RedisSentinel = await startSentinel({ downAfterMs: DOWN_AFTER_MS });
  const files = new Map<string, string>();
  for (const node of topology.nodes) {
    const [, directory] = (await node.command("CONFIG", "GET", "dir")) as string[];
    files.set(node.id, join(directory ?? "", "redis.conf"));
  }
  const names = Array.from({ length: NAMES_PER_SHARD + 1 }, (_, i) => `failover:${i}`);
  return {
    topology: "sentinel",
    ports: topology.addresses.map(({ port }) => port),
    masterName: topology.name,
    names,
    shards: async () => [{ master: await topology.master(), names }],
    replicasOf: async (master) => topology.nodes.filter(({ id }) => id !== master.id),
    masterOf: () => topology.master(),
    nodes: topology.nodes,
    async restart(master, successor) {
      // By its own file it would be a master, and an empty one.
      appendFileSync(files.get(master.id) ?? "", `\nreplicaof 127.0.0.1 ${successor.port}\n`);
      await master.restart();
    },
    settled: () => topology.settled(),
    stop: () => topology.stop(),
  };
}

/** Three masters, each with a replica. */
export async function clusterStage(): Promise<Stage> {
  const cluster: RedisCluster = await startCluster({ nodeTimeoutMs: 800 });
  const slots = new Map<string, number>();
  const counts = new Map<string, number>();
  for (let i = 0; [...counts.values()].filter((count) => count === NAMES_PER_SHARD).length < 3; i += 1) {
    const name = `failover:${i}`;
    const slot = Number(await cluster.nodes[0]?.command("CLUSTER", "KEYSLOT", `{${name}}`));
    const { id } = await cluster.masterOf(slot);
    const count = counts.get(id) ?? 0;
    if (count === NAMES_PER_SHARD) continue;
    counts.set(id, count + 1);
    slots.set(name, slot);
  }
  const names = [...slots.keys()];
  const masterOf = (name: string): Promise<Node> => cluster.masterOf(slots.get(name) ?? 0);
  return {
    topology: "cluster",
    ports: cluster.ports,
    masterName: "",
    names,
    async shards() {
      const owners = await Promise.all(names.map(masterOf));
      const masters = owners.filter((owner, i) => owners.indexOf(owner) === i);
      return masters.map((master) => ({ master, names: names.filter((_, i) => owners[i] === master) }));
    },
    replicasOf: (master) => cluster.replicasOf(cluster.node(master.id)),
    masterOf,
    nodes: cluster.nodes,
    // The others tell it that it has no slots any more before it takes writes.
    restart: (master) => master.restart(),
    settled: () => cluster.settled(),
    stop: () => cluster.stop(),
  };
}

/**
 * From now on the server gets nothing from its master, and stays what it is to all others: it is given a wrong name to
 * sign on with, and its link is cut.
 */
export async function cutReplication(replica: Node): Promise<void> {
  await replica.command("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing");
  await replica.command("CLIENT", "KILL", "TYPE", "master");
}

/** It may sign on again. */
export async function mendReplication(replica: Node): Promise<void> {
  await replica.command("CONFIG", "SET", "masteruser", "", "masterauth", "");
  // A sentinel has servers write down what they are, and then they write this down too.
  await replica.command("CONFIG", "REWRITE").catch(() => "it has no file");
}

/** Up to where the replica has what its master wrote. */
export async function offsetOf(node: Node): Promise<number> {
  const info = String(await node.command("INFO", "replication"));
  const field = info.includes("role:master") ? "master_repl_offset" : "slave_repl_offset";
  return Number(new RegExp(`${field}:(\\d+)`).exec(info)?.[1] ?? -1);
}

/** The holders of the locks, as a replica sees them. */
export async function holdersOn(replica: Node, names: readonly string[]): Promise<Map<string, string | null>> {
  const redis = new Redis({ port: replica.port, host: "127.0.0.1", lazyConnect: true, retryStrategy: null });
  redis.on("error", () => {});
  try {
    await redis.connect();
    await redis.readonly().catch(() => "only a cluster's replicas are asked for it");
    const owners = await Promise.all(names.map((name) => redis.get(`hf:mutex:{${name}}`)));
    return new Map(names.map((name, i) => [name, owners[i] ?? null]));
  } finally {
    redis.disconnect();
  }
}
