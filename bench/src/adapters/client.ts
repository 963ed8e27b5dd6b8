/** The clients of the contestants. All contestants use the same settings, so that only the libraries are compared. */
import type { GlideClient } from "@valkey/valkey-glide";
import type { Cluster, Redis } from "ioredis";
import type { createClient } from "redis";
import type { Connection } from "./adapter.js";

const HOST = "127.0.0.1";
/** GLIDE's default is 250 ms, which a request under load can exceed. */
const GLIDE_TIMEOUT_MS = 10_000;

/** An ioredis client on the loopback server. The heading shows its only setting that is not a default. */
export async function newIoredis({ port, autoPipelining }: Connection): Promise<Redis> {
  const ioredis = await import("ioredis");
  return new ioredis.Redis({ host: HOST, port, enableAutoPipelining: autoPipelining });
}

/** A client for each of several loopback servers. */
export function newIoredisOn(connection: Connection, ports: readonly number[]): Promise<Redis[]> {
  return Promise.all(ports.map((port) => newIoredis({ ...connection, port })));
}

/** A client of the cluster with nodes at these ports, once it is connected. Its settings are those of `newIoredis`. */
export async function newIoredisCluster({ autoPipelining }: Connection, ports: readonly number[]): Promise<Cluster> {
  const ioredis = await import("ioredis");
  const nodes = ports.map((port) => ({ host: HOST, port }));
  const client = new ioredis.Cluster(nodes, { enableAutoPipelining: autoPipelining, lazyConnect: true });
  await client.connect();
  return client;
}

/** A client made by `createClient` of node-redis. */
export type NodeRedis = ReturnType<typeof createClient>;

/** A connected node-redis client on the loopback server, with its defaults. */
export async function newNodeRedis({ port }: Connection): Promise<NodeRedis> {
  const redis = await import("redis");
  const client = redis.createClient({ socket: { host: HOST, port } });
  client.on("error", () => {}); // errors that matter also reject a call
  await client.connect();
  return client as NodeRedis;
}

/** A connected GLIDE client on the loopback server, with a longer timeout than its default. */
export async function newGlide({ port }: Connection): Promise<GlideClient> {
  const glide = await import("@valkey/valkey-glide");
  return await glide.GlideClient.createClient({
    addresses: [{ host: HOST, port }],
    requestTimeout: GLIDE_TIMEOUT_MS,
  });
}
