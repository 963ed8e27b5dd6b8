/** Clients of each library with default options, if they can reach the servers of a column through proxies. */
import { createClient, createCluster } from "redis";
import type { Column } from "../cell.js";
import { hasReplicas } from "../columns.js";
import type { Reach } from "../stage.js";
import { clientsFor } from "../subjects/holdfast-clients.js";
import type { ClientLibrary } from "./messages.js";

/** The client for `createHoldfast`, and how to close it. */
export interface LibraryClient {
  readonly redis: object;
  readonly subscriber?: () => unknown;
  close(): void;
}

const HOST = "127.0.0.1";

/** Why a library cannot be used in a column; undefined if it can. */
export function whyNoLibrary(library: ClientLibrary, column: Column): string | undefined {
  if (library === "ioredis" || !hasReplicas(column)) return undefined;
  if (library === "node-redis" && column === "C") return undefined;
  if (library === "glide" && column === "C") return "GLIDE cannot be led through proxies to the nodes of a cluster";
  return `${library} has no client for Sentinel that Holdfast knows`;
}

/** Creates and connects a client. @throws RangeError  it cannot be used there, see `whyNoLibrary` */
export async function connectLibrary(library: ClientLibrary, port: number, reach: Reach): Promise<LibraryClient> {
  if (library === "node-redis" && reach.by !== "sentinel") return nodeRedis(port, reach);
  if (library === "glide" && reach.by === "port") return glide(port);
  if (library !== "ioredis") throw new RangeError(`${library} cannot find its servers by ${reach.by}`);
  const { all, disconnect } = clientsFor(port, reach);
  const [redis] = all;
  if (redis === undefined) throw new RangeError("there is no server");
  return { redis, close: disconnect };
}

async function nodeRedis(port: number, reach: Reach): Promise<LibraryClient> {
  if (reach.by === "cluster") {
    const addresses = Object.entries(reach.lines).map(([at, line]) => [at, { host: HOST, port: line }] as const);
    const redis = createCluster({
      rootNodes: addresses.map(([, socket]) => ({ socket })),
      nodeAddressMap: Object.fromEntries(addresses),
    });
    redis.on("error", () => {});
    await redis.connect();
    return { redis, close: () => redis.destroy() };
  }
  const redis = createClient({ socket: { host: HOST, port } });
  // The client reconnects by itself; failed requests reject where they were made.
  redis.on("error", () => {});
  await redis.connect();
  return { redis, close: () => redis.destroy() };
}

async function glide(port: number): Promise<LibraryClient> {
  // Native code, loaded only where it is used.
  const { GlideClient } = await import("@valkey/valkey-glide");
  const make = () => GlideClient.createClient({ addresses: [{ host: HOST, port }] });
  const redis = await make();
  return { redis, subscriber: make, close: () => redis.close() };
}
