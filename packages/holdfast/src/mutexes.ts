/**
 * The entry point `holdfast/mutex`: only mutexes, for a client library that you choose. It suits programs that are
 * bundled or started often, because it is half the size of `holdfast`, which has every kind of lock and recognizes
 * every client library.
 */
import { adopt } from "./core/acquire.js";
import { show } from "./core/keys.js";
import type { ExportedLease } from "./core/lease.js";
import { Lock } from "./core/lock.js";
import { systemRuntime } from "./core/runtime.js";
import type { Store } from "./core/store.js";
import type { Holdfast } from "./holdfast.js";
import { checkExported, checkOptions, graceOf, type HoldfastOptions, type LockOptions } from "./holdfast-options.js";
import { withInternals } from "./internals.js";
import { checkConditions, conditionsOf, onOneServer } from "./on-one-server.js";
import type { GrantConditions, OpenSubscriber } from "./stores/client-store.js";
import { type IoredisClient, ioredisStore, ioredisSubscriber } from "./stores/ioredis.js";
import { type NodeRedisClient, nodeRedisStore, nodeRedisSubscriber } from "./stores/node-redis.js";

export type { CloseOptions, CloseOutcome, HeldLease } from "./core/closing.js";
export {
  AcquireTimeoutError,
  ClosedError,
  EvictionError,
  LeaseLostError,
  LockError,
  PausedError,
  ProtocolError,
  StoreError,
  UnsupportedError,
} from "./core/errors.js";
export type { ExportedLease, Lease, ReleaseOutcome } from "./core/lease.js";
export type { ForceReleaseOptions, Lock } from "./core/lock.js";
export type { AcquireOptions, RunOptions, TryAcquireOptions } from "./core/options.js";
export type { LockOptions } from "./holdfast-options.js";

/** A client and how to use it: the result of `ioredis` or `nodeRedis`. */
export interface Client {
  /** @internal */
  readonly store: (conditions: GrantConditions) => Store;
}

/** How to open the subscriber connection. */
export interface ClientOptions<Redis> {
  /**
   * Creates the subscriber connection, for a client that cannot be duplicated. Holdfast closes this connection. Without
   * this option, Holdfast duplicates the client.
   */
  readonly subscriber?: (() => Redis | Promise<Redis>) | undefined;
}

/**
 * Uses an ioredis or iovalkey client for one server or Sentinel, and never closes it. For a cluster, use `holdfast`.
 *
 * @throws TypeError  `redis` is not such a client
 */
export function ioredis(redis: object, { subscriber }: ClientOptions<object> = {}): Client {
  const isCluster = Reflect.get(Object(redis), "isCluster") === true;
  if (typeof Reflect.get(Object(redis), "evalsha") !== "function" || isCluster)
    throw new TypeError(`ioredis needs an ioredis or iovalkey client of one server; got ${show(redis)}`);
  const open: OpenSubscriber | undefined =
    subscriber && (async (events) => ioredisSubscriber((await subscriber()) as IoredisClient, events));
  return { store: (conditions) => ioredisStore(redis as IoredisClient, open, conditions) };
}

/**
 * Uses a node-redis client or pool for one server or Sentinel, and never closes it. For a cluster, use `holdfast`.
 *
 * @throws TypeError  `redis` is not such a client
 */
export function nodeRedis(redis: object, { subscriber }: ClientOptions<object> = {}): Client {
  const isCluster = typeof Reflect.get(Object(redis), "getSlotMaster") === "function";
  if (typeof Reflect.get(Object(redis), "evalSha") !== "function" || isCluster)
    throw new TypeError(`nodeRedis needs a node-redis client or pool of one server; got ${show(redis)}`);
  const open: OpenSubscriber | undefined =
    subscriber && (async (events) => nodeRedisSubscriber((await subscriber()) as NodeRedisClient, events));
  return { store: (conditions) => nodeRedisStore(redis as NodeRedisClient, open, conditions) };
}

/**
 * Options of `createMutexes`: those of `createHoldfast`, with `client` in place of `redis`, `redlock` and `subscriber`.
 */
export interface MutexesOptions extends Omit<HoldfastOptions, "redis" | "redlock" | "store" | "subscriber"> {
  /** The result of `ioredis` or `nodeRedis`. */
  readonly client: Client;
}

/** Creates mutexes on one server. Like `Holdfast`, but without the other kinds, pauses and conditions. */
export interface Mutexes extends Pick<Holdfast, "adopt" | "held" | "close">, AsyncDisposable {
  /**
   * Returns the mutex with this name (1 to 512 bytes). Sends no request and needs no cleanup. It is the same lock as
   * `createHoldfast(…).mutex(name)`, without conditions.
   * @throws TypeError, RangeError  an invalid name or option
   */
  mutex(name: string, options?: LockOptions): Lock;
}

/**
 * Creates mutexes, without the other kinds of lock. A mutex with the same name from `createHoldfast` is the same lock.
 * Sends nothing until the first acquire.
 *
 * @throws TypeError, RangeError  an invalid option; the message names the option, its range and the value received
 * @throws UnsupportedError       an option that the client does not support
 *
 * @example
 * import { createMutexes, ioredis } from "holdfast/mutex";
 * import { Redis } from "ioredis";
 *
 * const mutexes = createMutexes({ client: ioredis(new Redis()) });
 * await mutexes.mutex("order:42").run(async () => charge(order));
 */
export function createMutexes(options: MutexesOptions): Mutexes {
  const { client, ...others } = options ?? {};
  if (typeof client?.store !== "function")
    throw new TypeError(`createMutexes needs client: the result of ioredis(…) or nodeRedis(…); got ${show(client)}`);
  const checked = checkOptions(others, []);
  const store = checkConditions(client.store(conditionsOf(others)), others);
  const parts = onOneServer(store, { runtime: systemRuntime, options: checked, isOwnStore: false });
  const { session, defaults } = parts;
  const mutex = parts.factoryOf<Lock>(Lock);
  const mutexes: Mutexes = {
    mutex,
    async adopt(exported: ExportedLease) {
      const { kind, name, key } = checkExported(exported);
      if (kind !== "mutex") throw new TypeError(`kind must be mutex; got ${show(kind)}`);
      const { protocol, make } = Lock.partsOf(mutex(name, key === undefined ? {} : { key }));
      return adopt(session, protocol, exported, make);
    },
    held: () => session.held(),
    close: async (closeOptions) => session.close(graceOf(closeOptions)),
    async [Symbol.asyncDispose]() {
      await session.close();
    },
  };
  const { prefix, clientName } = checked;
  return withInternals(mutexes, { session, defaults, prefix, clientName });
}
