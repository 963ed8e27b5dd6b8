/** Reads what a node knows about its cluster. */
import { randomBytes } from "node:crypto";
import { clusterSlot, tagOf } from "holdfast/diagnosis";
import type { Redis } from "ioredis";
import type { ClusterFacts, Topology } from "../facts.js";
import { parseInfo } from "./info.js";
import type { Link, Place } from "./link.js";

/** In a cluster the probe key and channel are in the last slot of the node, where the marker for the whole node is. */
export async function placeOf(redis: Redis, topology: Topology, prefix: string): Promise<Place> {
  const self = `doctor-${randomBytes(9).toString("base64url")}`;
  const home = topology === "cluster" ? await lastSlot(redis).catch(() => undefined) : undefined;
  if (home === undefined) {
    return { key: `${prefix}:{${self}}`, channel: `${prefix}:in:${self}`, marker: `${prefix}:lineage` };
  }
  const tag = tagOf(home);
  return {
    key: `${prefix}:{${tag}}:${self}`,
    channel: `${prefix}:in:{${tag}}:${self}`,
    marker: `${prefix}:lineage:{${tag}}:home`,
  };
}

/** Undefined for a node that serves no slots. For a replica, the last slot of its primary. */
async function lastSlot(redis: Redis): Promise<number | undefined> {
  const [id, ranges] = await Promise.all([redis.call("CLUSTER", "MYID"), redis.call("CLUSTER", "SLOTS")]);
  const its = (ranges as unknown[][]).filter(([, , ...nodes]) => nodes.some((node) => (node as unknown[])[2] === id));
  const lasts = its.map(([, last]) => Number(last));
  return lasts.length === 0 ? undefined : Math.max(...lasts);
}

/** @throws Error  CLUSTER INFO is refused, or the server is not part of a cluster */
export async function readCluster({ redis, prefix, topology }: Link): Promise<ClusterFacts | undefined> {
  if (topology !== "cluster") return undefined;
  const info = parseInfo(String(await redis.call("CLUSTER", "INFO")));
  const keys = ["", ":fence", ":queue"].map((suffix) => `${prefix}:mutex:{doctor}${suffix}`);
  const [nodes, ...slots] = await Promise.all([
    redis.call("CLUSTER", "NODES").catch(() => ""),
    ...keys.map((key) => redis.call("CLUSTER", "KEYSLOT", key).catch(() => undefined)),
  ]);
  const own = String(nodes)
    .split("\n")
    .find((line) => line.includes("myself"));
  return {
    info,
    // `[93-<-id]` is a slot that moves to this node; `[93->-id]` is one that moves away.
    moving: [...(own ?? "").matchAll(/\[(\d+)-[<>]-/g)].map(([, slot]) => Number(slot)),
    misplaced: keys.filter((key, at) => slots[at] !== undefined && Number(slots[at]) !== clusterSlot(key)),
  };
}
