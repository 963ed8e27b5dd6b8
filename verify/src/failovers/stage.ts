/** The servers of a run, with functions to find the masters, cut replication and kill a master. */
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

/** The servers of a run. */
export interface Stage {
  readonly topology: "sentinel" | "cluster";
  /** The ports that clients connect to first. */
  readonly ports: readonly number[];
  readonly masterName: string;
  /** Lock names, spread over all masters. */
  readonly names: readonly string[];
  /** The masters, each with the locks that it stores. */
  shards(): Promise<{ readonly master: Node; readonly names: readonly string[] }[]>;
  replicasOf(master: Node): Promise<Node[]>;
  masterOf(name: string): Promise<Node>;
  readonly nodes: readonly Node[];
  /** Restarts a killed master as a replica of its successor. */
  restart(master: Node, successor: Node): Promise<void>;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Names of locks for each master. */
const NAMES_PER_SHARD = 3;

/**
 * High enough that a slow master on a busy machine is not considered dead; otherwise sentinels would promote a second
 * one.
 */
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
      // Its own configuration file would start it as an empty master.
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
    // Before it accepts writes, the other nodes tell it that it no longer owns slots.
    restart: (master) => master.restart(),
    settled: () => cluster.settled(),
    stop: () => cluster.stop(),
  };
}

/**
 * Stops replication to this server without changing its role: sets a wrong user name for its master, and cuts the
 * link.
 */
export async function cutReplication(replica: Node): Promise<void> {
  await replica.command("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing");
  await replica.command("CLIENT", "KILL", "TYPE", "master");
}

/** Allows the replica to log in again. */
export async function mendReplication(replica: Node): Promise<void> {
  await replica.command("CONFIG", "SET", "masteruser", "", "masterauth", "");
  // When a sentinel makes servers rewrite their configuration files, the wrong name is written too, so it is removed
  // here.
  await replica.command("CONFIG", "REWRITE").catch(() => "it has no file");
}

/** The replication offset up to which the replica has its master's writes. */
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
