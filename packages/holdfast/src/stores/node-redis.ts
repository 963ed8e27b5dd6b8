/** Holdfast on a client, pool or sentinel of node-redis 4 to 6 (`redis`, `@redis/client`) that the caller owns. */

import { UnsupportedError } from "../core/errors.js";
import type { ClientTimeouts, Replicas, ServerAddress, Store } from "../core/store.js";
import {
  clientStore,
  type OpenSubscriber,
  overOneSubscriber,
  overSharedSubscriber,
  type Terms,
} from "./client-store.js";
import { placeOf } from "./failure.js";
import type { Subscriber, SubscriberEvents } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { sharedWatch } from "./shared-watch.js";

/** What this store uses of a client. See IoredisClient for why it is not the library's own type. */
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
  /** A pool has none of the following. */
  duplicate?(overrides?: object): NodeRedisClient;
  connect?(): Promise<unknown>;
  ping?(): Promise<unknown>;
  wait?(replicas: number, timeoutMs: number): Promise<unknown>;
  unref?(): unknown;
  subscribe?(channels: string[], listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe?(channels: string[]): Promise<unknown>;
  /** 5 and 6. */
  destroy?(): unknown;
  /** 4. */
  disconnect?(): Promise<unknown>;
  /** Of a client for Sentinel alone. */
  getMasterNode?(): unknown;
  on(event: string, listener: (detail?: unknown) => void): unknown;
  off(event: string, listener: (detail?: unknown) => void): unknown;
}

/** What a client for Sentinel tells, of all that it tells, when another server is the master. */
function isOtherMaster(change: unknown): boolean {
  return typeof change === "object" && change !== null && Reflect.get(change, "type") === "MASTER_CHANGE";
}

/**
 * A store on one node-redis client.
 *
 * Its own timeouts end when a command has been written, so a stalled server would hang it; ours do not. It
 * never sends a command twice.
 *
 * @param openSubscriber  makes the connection that listens; by default a duplicate of `redis`, which a pool has not
 * @param terms    what has to be so for a grant to count
 */
export function nodeRedisStore(redis: NodeRedisClient, openSubscriber?: OpenSubscriber, terms: Terms = {}): Store {
  /** How often the client became ready. */
  let readies = 0;
  const { wait, duplicate } = redis;
  const client: ScriptClient = {
    evalsha: (sha1, keys, args) => redis.evalSha(sha1, { keys: [...keys], arguments: args.map(toArgument) }),
    load: (source) => redis.scriptLoad(source),
    // A pool would send the two on different connections.
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
          // WAIT speaks of what its own connection has written: a new one has written nothing.
          if (readies !== readiesBefore) throw new Error("the connection was lost before replicas acknowledged");
          return [reply, Number(count)];
        },
      }),
    isClosed: () => redis.isOpen === false,
    noConnection: () => (redis.isReady === false ? placeOf(nodeRedisServer(redis)) : undefined),
    losses: () => 0,
  };
  if (terms.replicas !== undefined) redis.on("ready", () => (readies += 1));

  function watch(onBack: () => void): () => void {
    // From version 5 on a client is a view of the real one (Object.create), and Node counts listeners view by
    // view. Where ours is the only one through this view, taking it back would leave the view deaf for ever, so
    // it stays and does nothing.
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
    // Behind Sentinel there is no other word.
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
    inboxes:
      openSubscriber === undefined
        ? overSharedSubscriber(redis, openNodeRedisSubscriber(redis))
        : overOneSubscriber(openSubscriber),
    watch: sharedWatch(redis, watch),
    terms,
    server: () => nodeRedisServer(redis),
    clientTimeouts: () => clientTimeouts(redis),
  });
}

const CONNECT_AGAIN = "close and connect the node-redis client again when it does not answer a PING";

/** Undefined of a pool, and of a client for Sentinel, which have the options of their connections elsewhere. */
function clientTimeouts({ options, getMasterNode, duplicate, destroy }: NodeRedisClient): ClientTimeouts | undefined {
  if (getMasterNode !== undefined || duplicate === undefined) return undefined;
  const { socketTimeout, reconnectStrategy, keepAlive, keepAliveInitialDelay } = options?.socket ?? {};
  const keepAliveMs = typeof keepAlive === "number" ? keepAlive : keepAliveInitialDelay;
  const isOwnStrategy = typeof reconnectStrategy === "function" || typeof reconnectStrategy === "number";
  return {
    library: "node-redis",
    // Version 4 ignores it.
    socketTimeoutMs: destroy === undefined ? undefined : socketTimeout,
    keepAliveMs: keepAlive === false ? undefined : keepAliveMs,
    cure: cureOf(destroy !== undefined, socketTimeout !== undefined, isOwnStrategy),
  };
}

function cureOf(hasSocketTimeout: boolean, isSet: boolean, isOwnStrategy: boolean): string | undefined {
  if (!hasSocketTimeout) return CONNECT_AGAIN;
  if (!isSet) return `${CONNECT_AGAIN}, or set socket.socketTimeout and a socket.reconnectStrategy of your own`;
  return isOwnStrategy
    ? undefined
    : "set socket.reconnectStrategy, because without it a socket timeout closes the client for good";
}

/** Where it says nothing, the library goes to the defaults. A pool says nothing of any of its clients. */
function nodeRedisServer({ options, getMasterNode, duplicate }: NodeRedisClient): ServerAddress | undefined {
  if (getMasterNode !== undefined || duplicate === undefined) return undefined;
  const { host = "localhost", port = 6_379, path } = options?.socket ?? {};
  return path === undefined ? { host, port: Number(port) } : { host: path, port: undefined };
}

/** Listens on `subscriber`, a connection that from now on does nothing else; connects it if need be. */
export function nodeRedisSubscriber(subscriber: NodeRedisClient, events: SubscriberEvents): Subscriber {
  // Without a listener an error ends the process. It is all that tells that the client has given up.
  const isBehindSentinel = subscriber.getMasterNode !== undefined;
  let isConnected = subscriber.isOpen === true;
  // A client for Sentinel subscribes again by itself, without a word when that is done. So each change, and each error, which
  // may be that of its listening connection, ends it, and another one is opened.
  subscriber.on("error", () => {
    if (subscriber.isOpen === false || (isBehindSentinel && isConnected)) events.onEnd();
  });
  subscriber.on("topology-change", (change) => {
    if (isConnected && isOtherMaster(change)) events.onEnd();
  });
  // Who waits has a timer of its own. An idle subscriber connection must not keep the process alive.
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
      // Behind Sentinel the library opens another connection for whoever subscribes after the end, and keeps it.
      if (!isClosed) await subscriber.subscribe?.([...channels], onMessage);
      if (isClosed) {
        await close();
        throw new Error("the connection that listens was closed");
      }
      // The library answers at once for a channel it knows, while it may still be subscribing again after a
      // reconnect. Replies come in order, so this one comes after the server's confirmation.
      await subscriber.ping?.();
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

/** A connection like that of `redis`, but one that only listens, and does not give up while `redis` has not. */
function openNodeRedisSubscriber(redis: NodeRedisClient): OpenSubscriber {
  return (events) => {
    if (redis.duplicate === undefined || redis.connect === undefined || redis.subscribe === undefined) {
      throw new UnsupportedError(
        "inbox",
        "This node-redis client cannot be duplicated: give the option `subscriber`, a function that makes a client for listening.",
      );
    }
    return nodeRedisSubscriber(redis.duplicate(nodeRedisSubscriberOptions(redis)), events);
  };
}

/**
 * The user's `socketTimeout` where it is safe. It ends a connection that has received nothing for that long. So it would end an idle
 * subscriber again and again, unless the replies to pings come sooner. Without it, echoes find a dead connection (core/inbox-check.ts).
 */
export function listeningTimeout(
  pingInterval: number | undefined,
  socketTimeout: number | undefined,
): number | undefined {
  if (pingInterval === undefined || socketTimeout === undefined) return undefined;
  return pingInterval > 0 && 2 * pingInterval <= socketTimeout ? socketTimeout : undefined;
}

/** What a user sets for commands can break a connection that listens for hours and sends next to nothing. */
function nodeRedisSubscriberOptions(redis: NodeRedisClient): object {
  const socket = redis.options?.socket;
  // A cluster or sentinel has its socket options elsewhere.
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
