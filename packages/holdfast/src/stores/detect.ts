/**
 * Detects the client library from the object's methods. No library is imported, so none has to be installed, and
 * several copies or versions of a library can be used side by side.
 *
 * To support a new library, add a file with a store and a subscriber connection, and one case in each of `storeFor` and
 * `subscriberFor`.
 */

import type { Store } from "../core/store.js";
import type { GrantConditions, OpenSubscriber } from "./client-store.js";
import { type GlideClient, glideStore, glideSubscriber } from "./glide.js";
import { glideClusterStore } from "./glide-cluster.js";
import type { Subscriber, SubscriberEvents } from "./inbox-hub.js";
import { type IoredisClient, ioredisStore, ioredisSubscriber } from "./ioredis.js";
import { type IoredisCluster, ioredisClusterStore } from "./ioredis-cluster.js";
import { type NodeRedisClient, nodeRedisStore, nodeRedisSubscriber } from "./node-redis.js";
import { type NodeRedisCluster, nodeRedisClusterStore } from "./node-redis-cluster.js";

type Method = (...inputs: never[]) => unknown;

/** Values of the option `redis`: a client of any supported library, or a store. */
export type RedisClient =
  | { defineCommand: Method; evalsha: Method; duplicate: Method }
  | { evalSha: Method; scriptLoad: Method }
  | { customCommand: Method; invokeScript: Method }
  | Store;

/** How to use a client. */
export interface StoreForOptions {
  /**
   * Creates a client, of any supported library, for a separate subscriber connection. The store closes it. Needed with
   * GLIDE and with a node-redis pool; other clients are duplicated. Not accepted with a cluster client of ioredis,
   * iovalkey or node-redis, because the store then opens a connection to each server itself.
   */
  readonly subscriber?: (() => unknown) | undefined;
  /** Conditions under which a grant counts. Ignored for a store. */
  readonly conditions?: GrantConditions | undefined;
  /** The name of the option through which the client was passed, for error messages. @default "redis" */
  readonly option?: string | undefined;
}

const ACCEPTED = "a client of ioredis, iovalkey, node-redis or @valkey/valkey-glide, or a store";

const CLUSTER_LISTENS = "Holdfast opens its own subscriber connection to each server of the cluster";

/**
 * Returns a store for a client that the caller owns, or the object itself if it is already a store.
 *
 * @throws TypeError  neither a usable client nor a store, or `subscriber` with a cluster client that does not accept it
 */
export function storeFor(redis: unknown, { subscriber, conditions, option = "redis" }: StoreForOptions = {}): Store {
  const openSubscriber: OpenSubscriber | undefined =
    subscriber && (async (events) => subscriberFor(await subscriber(), "the result of `subscriber`", events));
  if (isStore(redis)) return redis;
  refuseMode(redis, option);
  if (isIoredisCluster(redis) || isNodeRedisCluster(redis)) {
    if (subscriber !== undefined)
      throw new TypeError(
        `The option \`subscriber\` cannot be used with ${describeClient(redis)}: ${CLUSTER_LISTENS}.`,
      );
    return isIoredisCluster(redis) ? ioredisClusterStore(redis, conditions) : nodeRedisClusterStore(redis, conditions);
  }
  if (isIoredis(redis)) return ioredisStore(redis, openSubscriber, conditions);
  if (isNodeRedis(redis)) return nodeRedisStore(redis, openSubscriber, conditions);
  if (isGlide(redis))
    return has(redis, "ssubscribe")
      ? glideClusterStore(redis, openSubscriber, conditions)
      : glideStore(redis, openSubscriber, conditions);
  throw new TypeError(`The option \`${option}\` must be ${ACCEPTED}; got ${describeClient(redis)}.`);
}

/**
 * Rejects clients that cannot run scripts. Without this check, the first acquire would fail, and only after `waitMs`.
 */
function refuseMode(client: unknown, option: string): void {
  if (typeof client !== "object" || client === null) return;
  const read = (name: string): unknown => Reflect.get(client, name);
  const options = read("options") as { legacyMode?: unknown; monitor?: unknown } | undefined;
  if (options?.legacyMode === true)
    throw unusable(option, "a node-redis client in legacy mode", "create it without `legacyMode`");
  if (options?.monitor === true || read("status") === "monitoring")
    throw unusable(option, "an ioredis client in monitor mode", "pass the client on which you called `monitor()`");
  if (read("mode") === "subscriber")
    throw unusable(
      option,
      "an ioredis client that has subscribed to a channel",
      "pass another client, such as `client.duplicate()`",
    );
  if (has(client, "evalsha", "internal_send_command"))
    throw unusable(option, "a client from version 3 or earlier of the redis package", "install version 4 or later");
  if (Reflect.get(client, "constructor")?.name === "RedisMock")
    throw unusable(
      option,
      "an ioredis-mock client",
      "use `{ store: embedded() }` from @holdfast/embedded in tests: it runs the real scripts",
    );
}

function unusable(option: string, what: string, fix: string): TypeError {
  return new TypeError(`The option \`${option}\` must be a client that can run scripts; got ${what}: ${fix}.`);
}

function subscriberFor(client: unknown, what: string, events: SubscriberEvents): Subscriber {
  if (isIoredis(client)) return ioredisSubscriber(client, events);
  if (isNodeRedis(client) && has(client, "subscribe")) return nodeRedisSubscriber(client, events);
  if (isGlide(client)) return glideSubscriber(client, events);
  throw new TypeError(`${what} must be a client that can subscribe; got ${describeClient(client)}.`);
}

function isStore(value: unknown): value is Store {
  return has(value, "run", "inbox", "onReconnect", "close");
}

function isIoredisCluster(value: unknown): value is IoredisCluster {
  return isIoredis(value) && Reflect.get(value, "isCluster") === true;
}

function isNodeRedisCluster(value: unknown): value is NodeRedisCluster {
  return has(value, "evalSha", "nodeClient", "getSlotMaster");
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

function describeClient(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name: unknown = Reflect.get(value, "constructor")?.name;
  if (typeof name !== "string" || name === "") return "an object without a class";
  return name === "Object" ? "a plain object" : `an object of class ${name}`;
}
