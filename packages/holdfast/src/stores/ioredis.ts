/** The store for a client of ioredis 5 or 6, or of iovalkey. The caller owns and closes the client. */

import { errorMonitor } from "node:events";
import type { ClientTimeouts, Replicas, ServerAddress, Store } from "../core/store.js";
import { clientStore, type GrantConditions, type OpenSubscriber, overSubscriber, sharedWatch } from "./client-store.js";
import { messageOf, placeOf } from "./failure.js";
import type { Subscriber, SubscriberEvents } from "./inbox-hub.js";
import { freed, type ScriptClient, toArgument } from "./script-runner.js";

/**
 * The part of a client that this store uses. It is not the library's own type, because users of another library, or of
 * another major version, must be able to compile.
 */
export interface IoredisClient {
  readonly status: string;
  readonly options?: {
    readonly retryStrategy?: unknown;
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly path?: string | null | undefined;
    readonly sentinels?: unknown;
    readonly socketTimeout?: number | undefined;
    readonly keepAlive?: number | undefined;
    readonly keyPrefix?: string | undefined;
  };
  /** The socket, once it exists. */
  readonly stream?: {
    unref?(): unknown;
    cork?(): void;
    uncork?(): void;
    readonly remoteAddress?: string | undefined;
    readonly remotePort?: number | undefined;
  };
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): Promise<unknown>;
  /** Sends any command, even one that the library does not know. It adds no key prefix. */
  call(command: string, ...inputs: string[]): Promise<unknown>;
  /** Sends several commands together, in order. */
  pipeline(): IoredisPipeline;
  script(subcommand: "LOAD", source: string): Promise<unknown>;
  duplicate(overrides: object): IoredisClient;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  disconnect(): void;
  on(event: string | typeof errorMonitor, listener: (...values: string[]) => void): unknown;
  off(event: string | typeof errorMonitor, listener: (...values: string[]) => void): unknown;
}

/** `exec` returns a pair for each command: an error, or null and the reply. */
interface IoredisPipeline {
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): IoredisPipeline;
  call(command: string, ...inputs: string[]): IoredisPipeline;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** How many times each client lost its connection while a store used it, and the client's last error. */
const lossesOf = new WeakMap<IoredisClient, { count: number; lastError?: string | undefined }>();

/**
 * Creates a store on one ioredis or iovalkey client.
 *
 * By default, the client resends commands that were in flight when it lost its connection. So a script may run twice,
 * and a refusal then applies only to the second run; `mayHaveRun` takes that into account.
 *
 * @param openSubscriber  opens the subscriber connection; by default a duplicate of `redis`
 * @param conditions  conditions under which a grant counts
 */
export function ioredisStore(
  redis: IoredisClient,
  openSubscriber?: OpenSubscriber,
  conditions: GrantConditions = {},
): Store {
  const losses = lossesOf.get(redis) ?? { count: 0 };
  lossesOf.set(redis, losses);
  let isCorked = false;

  /**
   * Combines all commands sent in one turn of the event loop into one write. Replies often arrive together, so the
   * calls made in response are sent together too. A single call is not delayed, because the write happens before any
   * other event.
   */
  function cork(): void {
    const { stream } = redis;
    if (isCorked || stream?.cork === undefined || stream.uncork === undefined) return;
    isCorked = true;
    stream.cork();
    process.nextTick(() => {
      isCorked = false;
      stream.uncork?.();
    });
  }

  const client: ScriptClient = {
    // The library adds the client's key prefix only to commands that it knows, so `call` would send keys without it.
    free: redis.options?.keyPrefix
      ? undefined
      : ([lock = "", queue = ""], [owner]) => {
          cork();
          return freed(redis.call("DELIFEQ", lock, String(owner)), redis.call("EXISTS", queue));
        },
    evalsha(sha1, keys, args) {
      cork();
      return redis.evalsha(sha1, keys.length, ...inputsOf(keys, args));
    },
    load: (source) => redis.script("LOAD", source),
    async acknowledged(
      sha1: string,
      keys: readonly string[],
      args: readonly (string | number)[],
      { atLeast, timeoutMs }: Replicas,
    ): Promise<readonly [unknown, number]> {
      const lossesBefore = losses.count;
      const sent = redis.pipeline().evalsha(sha1, keys.length, ...inputsOf(keys, args));
      const results = await sent.call("WAIT", String(atLeast), String(timeoutMs)).exec();
      const [ran, waited] = results ?? [];
      const error = ran?.[0] ?? waited?.[0];
      if (error) throw error;
      // WAIT covers only the writes of its own connection, so a reply on a new connection proves nothing.
      if (losses.count !== lossesBefore) throw new Error("the connection was lost before the replicas acknowledged");
      return [ran?.[1], Number(waited?.[1])];
    },
    isClosed: () => isGone(redis),
    noConnection: () => (redis.status === "ready" ? undefined : placeOf(ioredisServer(redis), losses.lastError)),
    losses: () => losses.count,
  };

  function watch(onBack: () => void): () => void {
    let isLost = false;
    if (redis.status === "ready") losses.lastError = undefined;
    const onClose = (): void => {
      losses.count += 1;
      isLost = true;
    };
    const onReady = (): void => {
      if (isLost) onBack();
      isLost = false;
      losses.lastError = undefined;
    };
    const onError = (error: unknown): void => {
      losses.lastError = messageOf(error);
    };
    redis.on("close", onClose);
    redis.on("ready", onReady);
    // `errorMonitor` does not count as an error listener, so the library still prints errors that the user does not
    // handle.
    redis.on(errorMonitor, onError);
    return () => {
      redis.off(errorMonitor, onError);
      redis.off("close", onClose);
      redis.off("ready", onReady);
    };
  }

  return clientStore({
    kind: "ioredis",
    client,
    inboxes: overSubscriber(redis, openSubscriber, openIoredisSubscriber(redis)),
    watch: sharedWatch(redis, watch),
    conditions,
    server: () => ioredisServer(redis),
    clientTimeouts: () => ioredisTimeouts(redis.options),
  });
}

/** How a client, or the nodes of a cluster, detect dead connections, according to their options. */
export function ioredisTimeouts({
  socketTimeout,
  keepAlive,
}: Pick<NonNullable<IoredisClient["options"]>, "socketTimeout" | "keepAlive"> = {}): ClientTimeouts {
  return {
    library: "ioredis",
    socketTimeoutMs: socketTimeout,
    // 0 means the default of the operating system, which is two hours.
    keepAliveMs: keepAlive || undefined,
    cure: socketTimeout === undefined ? "set the client option socketTimeout to about 5000" : undefined,
  };
}

/** Uses `subscriber` as a subscriber connection. It must not be used for anything else. */
export function ioredisSubscriber(subscriber: IoredisClient, events: SubscriberEvents): Subscriber {
  // Ignore errors, because relevant ones also arrive as a rejection or as `end`. Without a listener, the library would
  // print them.
  subscriber.on("error", () => {});
  subscriber.on("message", (channel = "", message = "") => events.onMessage(channel, message));
  subscriber.on("ready", () => events.onReady());
  subscriber.on("end", () => events.onEnd());
  // An idle subscriber connection must not keep the process alive. Waiters keep it alive with their own timers.
  subscriber.on("connect", () => subscriber.stream?.unref?.());
  subscriber.stream?.unref?.();
  return {
    subscribe: (channels) => subscriber.subscribe(...channels),
    unsubscribe: (channel) => subscriber.unsubscribe(channel),
    close() {
      // Disconnecting an ended client would start a timer that keeps the process alive for two seconds.
      if (subscriber.status !== "end") subscriber.disconnect();
    },
  };
}

/** The address of the server. Behind Sentinel, only the socket knows the address of the master. */
function ioredisServer({ options, stream }: IoredisClient): ServerAddress | undefined {
  const { host, port, path, sentinels } = options ?? {};
  if (sentinels === undefined || sentinels === null) {
    if (typeof path === "string") return { host: path, port: undefined };
    return host === undefined ? undefined : { host, port };
  }
  const address = stream?.remoteAddress;
  return address === undefined ? undefined : { host: address, port: stream?.remotePort };
}

/** Returns keys and arguments in the form that the library expects. */
export function inputsOf(keys: readonly string[], args: readonly (string | number)[]): string[] {
  const inputs: string[] = [...keys];
  for (const arg of args) inputs.push(toArgument(arg));
  return inputs;
}

/** Opens a subscriber connection with the options of `redis`. It keeps reconnecting for as long as `redis` does. */
function openIoredisSubscriber(redis: IoredisClient): OpenSubscriber {
  return (events) => ioredisSubscriber(redis.duplicate(ioredisSubscriberOptions(redis)), events);
}

/** Overrides for a subscriber connection. Options meant for commands can break a connection that is idle for hours. */
export const LISTENING: Readonly<Record<string, unknown>> = {
  lazyConnect: false,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  // `socketTimeout` is kept. It runs only while a command waits for its reply, so it does not end an idle connection.
  // The hub resubscribes. The library's own attempt is not needed, and would cause an unhandled rejection if it failed.
  autoResubscribe: false,
  autoResendUnfulfilledCommands: true,
  scripts: undefined,
  monitor: false,
};

/**
 * Whether the owner has closed the client. If the client is disconnected while it waits to reconnect, its status stays
 * "reconnecting" forever; only the library's internal field `manuallyClosing` shows that it was closed.
 */
function isGone(redis: IoredisClient): boolean {
  return redis.status === "end" || (redis.status === "reconnecting" && Reflect.get(redis, "manuallyClosing") === true);
}

function ioredisSubscriberOptions(redis: IoredisClient): Record<string, unknown> {
  const userStrategy = redis.options?.retryStrategy;
  return {
    ...LISTENING,
    retryStrategy(times: number): number | null {
      if (isGone(redis)) return null;
      const delayMs: unknown = typeof userStrategy === "function" ? userStrategy(times) : undefined;
      return typeof delayMs === "number" ? delayMs : Math.min(50 * times, 2_000);
    },
  };
}
