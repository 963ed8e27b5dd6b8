/**
 * The store for a client, a pool or a Sentinel client of node-redis 4 to 6 (`redis`, `@redis/client`). The caller owns
 * and closes it.
 */

import { UnsupportedError } from "../core/errors.js";
import type { ClientTimeouts, Replicas, ServerAddress, Store } from "../core/store.js";
import { clientStore, type GrantConditions, type OpenSubscriber, overSubscriber, sharedWatch } from "./client-store.js";
import { missingPermission, placeOf } from "./failure.js";
import type { Subscriber, SubscriberEvents } from "./inbox-hub.js";
import { freed, type ScriptClient, toArgument } from "./script-runner.js";

/** The part of a client that this store uses. `IoredisClient` explains why it is not the library's own type. */
export interface NodeRedisClient {
  readonly isOpen?: boolean | undefined;
  readonly isReady?: boolean | undefined;
  readonly options?: {
    readonly pingInterval?: number | undefined;
    readonly socket?: {
      readonly reconnectStrategy?: unknown;
      readonly socketTimeout?: number | undefined;
      readonly keepAlive?: boolean | number | undefined;
      readonly keepAliveInitialDelay?: number | undefined;
      readonly host?: string | undefined;
      readonly port?: number | string | undefined;
      readonly path?: string | undefined;
    };
  };
  evalSha(sha1: string, inputs: { keys: string[]; arguments: string[] }): Promise<unknown>;
  scriptLoad(source: string): Promise<unknown>;
  /** Takes the words of a command. On a Sentinel client, it takes other arguments. */
  sendCommand?(...args: never[]): Promise<unknown>;
  /** A pool lacks this method, and some of those below. */
  duplicate?(overrides?: object): NodeRedisClient;
  connect?(): Promise<unknown>;
  ping?(): Promise<unknown>;
  wait?(replicas: number, timeoutMs: number): Promise<unknown>;
  unref?(): unknown;
  subscribe?(channels: string[], listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe?(channels: string[]): Promise<unknown>;
  /** In versions 5 and 6. */
  destroy?(): unknown;
  /** Used in version 4. */
  disconnect?(): Promise<unknown>;
  /** Only on a Sentinel client. */
  getMasterNode?(): unknown;
  on(event: string, listener: (detail?: unknown) => void): unknown;
  off(event: string, listener: (detail?: unknown) => void): unknown;
}

/** Whether a `topology-change` event of a Sentinel client means that another server is the master. */
function isOtherMaster(change: unknown): boolean {
  return typeof change === "object" && change !== null && Reflect.get(change, "type") === "MASTER_CHANGE";
}

/**
 * Creates a store on one node-redis client.
 *
 * The client's own timeouts no longer apply once a command is written, so a call to a stalled server would hang.
 * Holdfast's timeouts also cover the reply. The client never sends a command twice.
 *
 * @param openSubscriber  opens the subscriber connection; by default a duplicate of `redis`. A pool cannot be
 *                        duplicated
 * @param conditions  conditions under which a grant counts
 */
export function nodeRedisStore(
  redis: NodeRedisClient,
  openSubscriber?: OpenSubscriber,
  conditions: GrantConditions = {},
): Store {
  /** How many times the client has become ready. */
  let readies = 0;
  const { wait, duplicate, getMasterNode } = redis;
  const sendCommand = redis.sendCommand as ((words: string[]) => Promise<unknown>) | undefined;
  const client: ScriptClient = {
    // A pool sends the two commands on different connections, and a Sentinel client may too, so the order is uncertain.
    free:
      duplicate === undefined || getMasterNode !== undefined || sendCommand === undefined
        ? undefined
        : ([lock = "", queue = ""], [owner]) =>
            freed(
              sendCommand.call(redis, ["DELIFEQ", lock, String(owner)]),
              sendCommand.call(redis, ["EXISTS", queue]),
            ),
    evalsha: (sha1, keys, args) => redis.evalSha(sha1, { keys: [...keys], arguments: args.map(toArgument) }),
    load: (source) => redis.scriptLoad(source),
    // A pool would send EVALSHA and WAIT on different connections, so the result of WAIT would prove nothing.
    ...(wait !== undefined &&
      duplicate !== undefined && {
        async acknowledged(
          sha1: string,
          keys: readonly string[],
          args: readonly (string | number)[],
          { atLeast, timeoutMs }: Replicas,
        ): Promise<readonly [unknown, number]> {
          const readiesBefore = readies;
          const running = redis.evalSha(sha1, { keys: [...keys], arguments: args.map(toArgument) });
          const [reply, count] = await Promise.all([running, wait.call(redis, atLeast, timeoutMs)]);
          // WAIT covers only writes of its own connection, so a reply on a new connection proves nothing.
          if (readies !== readiesBefore) throw new Error("the connection was lost before the replicas acknowledged");
          return [reply, Number(count)];
        },
      }),
    isClosed: () => redis.isOpen === false,
    noConnection: () => (redis.isReady === false ? placeOf(nodeRedisServer(redis)) : undefined),
    losses: () => 0,
  };
  if (conditions.replicas !== undefined) redis.on("ready", () => (readies += 1));

  function watch(onBack: () => void): () => void {
    // Since version 5, a client is a view of the real one (Object.create), and Node counts listeners per view. If ours
    // is the only listener on this view, removing it would leave the view without events forever. In that case our
    // listener stays, but does nothing.
    const isCounted = Object.hasOwn(redis, "_eventsCount");
    let isWatching = true;
    let wasReady = redis.isReady === true;
    const onReady = (): void => {
      if (isWatching && wasReady) onBack();
      wasReady = true;
    };
    const onChange = (change: unknown): void => {
      if (isWatching && isOtherMaster(change)) onBack();
    };
    redis.on("ready", onReady);
    // Behind Sentinel, no other event reports a new master.
    redis.on("topology-change", onChange);
    return () => {
      isWatching = false;
      if (!isCounted) return;
      redis.off("ready", onReady);
      redis.off("topology-change", onChange);
    };
  }

  return clientStore({
    kind: "node-redis",
    client,
    inboxes: overSubscriber(redis, openSubscriber, openNodeRedisSubscriber(redis)),
    watch: sharedWatch(redis, watch),
    conditions,
    server: () => nodeRedisServer(redis),
    clientTimeouts: () => clientTimeouts(redis),
  });
}

const CONNECT_AGAIN = "if a PING gets no reply, close the node-redis client and connect it again";

/** Undefined for a pool and for a Sentinel client, which keep their connection options elsewhere. */
function clientTimeouts({ options, getMasterNode, duplicate, destroy }: NodeRedisClient): ClientTimeouts | undefined {
  if (getMasterNode !== undefined || duplicate === undefined) return undefined;
  const { socketTimeout, reconnectStrategy, keepAlive, keepAliveInitialDelay } = options?.socket ?? {};
  const keepAliveMs = typeof keepAlive === "number" ? keepAlive : keepAliveInitialDelay;
  const isOwnStrategy = typeof reconnectStrategy === "function" || typeof reconnectStrategy === "number";
  return {
    library: "node-redis",
    // Version 4 ignores `socketTimeout`.
    socketTimeoutMs: destroy === undefined ? undefined : socketTimeout,
    keepAliveMs: keepAlive === false ? undefined : keepAliveMs,
    cure: cureOf(destroy !== undefined, socketTimeout !== undefined, isOwnStrategy),
  };
}

function cureOf(hasSocketTimeout: boolean, isSet: boolean, isOwnStrategy: boolean): string | undefined {
  if (!hasSocketTimeout) return CONNECT_AGAIN;
  if (!isSet) return `${CONNECT_AGAIN}, or set socket.socketTimeout and your own socket.reconnectStrategy`;
  return isOwnStrategy
    ? undefined
    : "set socket.reconnectStrategy, because without it a socket timeout closes the client for good";
}

/**
 * The server's address, with the library's defaults for absent options. Undefined for a pool and for a Sentinel client,
 * which keep their connection options elsewhere.
 */
function nodeRedisServer({ options, getMasterNode, duplicate }: NodeRedisClient): ServerAddress | undefined {
  if (getMasterNode !== undefined || duplicate === undefined) return undefined;
  const { host = "localhost", port = 6_379, path } = options?.socket ?? {};
  return path === undefined ? { host, port: Number(port) } : { host: path, port: undefined };
}

/**
 * Uses `subscriber` as a subscriber connection, and connects it if necessary. It must not be used for anything else.
 */
export function nodeRedisSubscriber(subscriber: NodeRedisClient, events: SubscriberEvents): Subscriber {
  // Without a listener, an error would end the process. An error is also the only sign that the client has given up.
  const isBehindSentinel = subscriber.getMasterNode !== undefined;
  let isConnected = subscriber.isOpen === true;
  // A Sentinel client subscribes again by itself, but does not report when it is done. So the hub replaces it after
  // each change of the master, and after each error, because the error may come from its subscriber connection.
  subscriber.on("error", () => {
    if (subscriber.isOpen === false || (isBehindSentinel && isConnected)) events.onEnd();
  });
  subscriber.on("topology-change", (change) => {
    if (isConnected && isOtherMaster(change)) events.onEnd();
  });
  // An idle subscriber connection must not keep the process alive. Waiters keep it alive with their own timers.
  subscriber.unref?.();
  const connected = (isConnected ? Promise.resolve() : Promise.resolve(subscriber.connect?.())).then(() => {
    isConnected = true;
  });
  connected.catch(() => events.onEnd());
  subscriber.on("ready", () => events.onReady());
  const onMessage = (message: string, channel: string): void => events.onMessage(channel, message);

  let isClosed = false;
  const close = async (): Promise<void> => {
    if (subscriber.isOpen === false && !isBehindSentinel) return;
    await (subscriber.destroy === undefined ? subscriber.disconnect?.() : subscriber.destroy());
  };

  return {
    async subscribe(channels) {
      await connected;
      // Behind Sentinel, subscribing after `close` would make the library open another connection and keep it.
      if (!isClosed) await subscriber.subscribe?.([...channels], onMessage);
      if (isClosed) {
        await close();
        throw new Error("the subscriber connection was closed");
      }
      // If the library already knows the channel, `subscribe` resolves immediately, even during a resubscription after
      // a reconnect. Replies arrive in order, so the reply to this PING comes after the server's confirmation. If the
      // user lacks the permission for PING, the error reply serves the same purpose.
      try {
        await subscriber.ping?.();
      } catch (cause) {
        if (missingPermission(cause, {}) === undefined) throw cause;
      }
    },
    async unsubscribe(channel) {
      if (!isClosed) await subscriber.unsubscribe?.([channel]);
    },
    async close() {
      isClosed = true;
      await close();
    },
  };
}

/** Opens a subscriber connection with the options of `redis`. It keeps reconnecting for as long as `redis` does. */
function openNodeRedisSubscriber(redis: NodeRedisClient): OpenSubscriber {
  return (events) => {
    if (redis.duplicate === undefined || redis.connect === undefined || redis.subscribe === undefined) {
      throw new UnsupportedError(
        "inbox",
        "This node-redis client cannot be duplicated: pass the option `subscriber`, a function that creates a client for the subscriber connection.",
      );
    }
    return nodeRedisSubscriber(redis.duplicate(nodeRedisSubscriberOptions(redis)), events);
  };
}

/**
 * The user's `socketTimeout`, if it is safe for a subscriber. It ends a connection that has received nothing for that
 * long, so it would repeatedly end an idle subscriber unless ping replies arrive in time. If the timeout is unsafe,
 * the result is undefined, and echoes detect a dead connection (core/inbox-check.ts).
 */
export function listeningTimeout(
  pingInterval: number | undefined,
  socketTimeout: number | undefined,
): number | undefined {
  if (pingInterval === undefined || socketTimeout === undefined) return undefined;
  return pingInterval > 0 && 2 * pingInterval <= socketTimeout ? socketTimeout : undefined;
}

/** Overrides for a subscriber connection. Options meant for commands can break a connection that is idle for hours. */
function nodeRedisSubscriberOptions(redis: NodeRedisClient): object {
  const socket = redis.options?.socket;
  // A cluster or Sentinel client keeps its socket options elsewhere.
  if (socket === undefined) return {};
  const userStrategy = socket.reconnectStrategy;
  return {
    disableOfflineQueue: false,
    commandOptions: undefined,
    clientSideCache: undefined,
    socket: {
      ...socket,
      socketTimeout: listeningTimeout(redis.options?.pingInterval, socket.socketTimeout),
      reconnectStrategy(retries: number, cause: unknown): number | false {
        if (redis.isOpen === false) return false;
        const delayMs: unknown = typeof userStrategy === "function" ? userStrategy(retries, cause) : userStrategy;
        return typeof delayMs === "number" ? delayMs : Math.min(50 * (retries + 1), 2_000);
      },
    },
  };
}
