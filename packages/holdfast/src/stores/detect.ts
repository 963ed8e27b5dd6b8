/**
 * Which client library did the caller bring? Decided by what the object can do: no library is imported, so
 * none has to be installed, and two copies or versions of one are the same to us.
 *
 * A new library is one more file with a store and an ear, and one more case in the two functions here.
 */

import { UnsupportedError } from "../core/errors.js";
import type { Store } from "../core/store.js";
import type { OpenEar, Terms } from "./client-store.js";
import { type GlideClient, glideEar, glideStore } from "./glide.js";
import type { Ear, EarEvents } from "./inbox-hub.js";
import { type IoredisClient, ioredisEar, ioredisStore } from "./ioredis.js";
import { type NodeRedisClient, nodeRedisEar, nodeRedisStore } from "./node-redis.js";

type Method = (...inputs: never[]) => unknown;

/**
 * What the option `redis` takes: a client of any supported library, whichever of them is installed, or a store.
 */
export type RedisClient =
  | { defineCommand: Method; evalsha: Method; duplicate: Method }
  | { evalSha: Method; scriptLoad: Method }
  | { customCommand: Method; invokeScript: Method }
  | Store;

/** Choices about how to use a client. */
export interface StoreForOptions {
  /**
   * Makes a client, of any supported library, for a connection of its own that only listens. The store closes
   * it. Needed with GLIDE and with a pool of node-redis; elsewhere the client is duplicated.
   */
  readonly subscriber?: (() => unknown) | undefined;
  /** What has to be so for a grant to count. Of no account for a store. */
  readonly terms?: Terms | undefined;
}

const ACCEPTED = "a client of ioredis, iovalkey, node-redis or @valkey/valkey-glide, or an object with the Store port";

/**
 * The store for a client that the caller owns, or the object itself if it is a store already.
 *
 * @throws TypeError         it is neither
 * @throws UnsupportedError  it is a client of a cluster
 */
export function storeFor(redis: unknown, { subscriber, terms }: StoreForOptions = {}): Store {
  const openEar: OpenEar | undefined =
    subscriber && (async (events) => earFor(await subscriber(), "what `subscriber` made", events));
  if (isStore(redis)) return redis;
  if (isCluster(redis)) {
    // Its plain pub/sub counts the listeners of one node, so a waiter on another would be taken for dead.
    throw new UnsupportedError("redis", `Redis Cluster is not supported by this version; got ${describe(redis)}.`);
  }
  if (isIoredis(redis)) return ioredisStore(redis, openEar, terms);
  if (isNodeRedis(redis)) return nodeRedisStore(redis, openEar, terms);
  if (isGlide(redis)) return glideStore(redis, openEar, terms);
  throw new TypeError(`The option \`redis\` must be ${ACCEPTED}; got ${describe(redis)}.`);
}

function earFor(client: unknown, what: string, events: EarEvents): Ear {
  if (isIoredis(client)) return ioredisEar(client, events);
  if (isNodeRedis(client) && has(client, "subscribe")) return nodeRedisEar(client, events);
  if (isGlide(client)) return glideEar(client, events);
  throw new TypeError(`${what} must be a client that can subscribe; got ${describe(client)}.`);
}

function isStore(value: unknown): value is Store {
  return has(value, "run", "inbox", "onReconnect", "close");
}

/** By what clients of a cluster have and others have not; GLIDE's differ by their class alone. */
function isCluster(value: unknown): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  if (Reflect.get(value, "isCluster") === true || has(value, "nodeClient", "getSlotMaster")) return true;
  return isGlide(value) && value.constructor.name === "GlideClusterClient";
}

function isIoredis(value: unknown): value is IoredisClient {
  return has(value, "defineCommand", "evalsha", "duplicate");
}

function isNodeRedis(value: unknown): value is NodeRedisClient {
  return has(value, "evalSha", "scriptLoad");
}

function isGlide(value: unknown): value is GlideClient {
  return has(value, "customCommand", "invokeScript");
}

function has(value: unknown, ...methods: readonly string[]): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return methods.every((method) => typeof Reflect.get(value, method) === "function");
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name: unknown = Reflect.get(value, "constructor")?.name;
  if (typeof name !== "string" || name === "") return "an object without a class";
  return name === "Object" ? "a plain object" : `an object of class ${name}`;
}
