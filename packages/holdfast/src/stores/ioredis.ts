/** Holdfast on a client of ioredis 5 or 6, or of iovalkey, that the caller owns and closes. */

import { errorMonitor } from "node:events";
import type { ClientTimeouts, Replicas, ServerAddress, Store } from "../core/store.js";
import {
  clientStore,
  type OpenSubscriber,
  overOneSubscriber,
  overSharedSubscriber,
  type Terms,
} from "./client-store.js";
import { messageOf, placeOf } from "./failure.js";
import type { Subscriber, SubscriberEvents } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { sharedWatch } from "./shared-watch.js";

/**
 * What this store uses of a client. Not the library's own type: a user who has another library, or another
 * major version of it, must be able to compile.
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
  };
  /** The socket, as soon as there is one. */
  readonly stream?: {
    unref?(): unknown;
    cork?(): void;
    uncork?(): void;
    readonly remoteAddress?: string | undefined;
    readonly remotePort?: number | undefined;
  };
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): Promise<unknown>;
  /** Commands that leave together, one after the other. */
  pipeline(): IoredisPipeline;
  script(subcommand: "LOAD", source: string): Promise<unknown>;
  duplicate(overrides: object): IoredisClient;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  disconnect(): void;
  on(event: string | typeof errorMonitor, listener: (...values: string[]) => void): unknown;
  off(event: string | typeof errorMonitor, listener: (...values: string[]) => void): unknown;
}

/** Each result is an error, or null and the reply. */
interface IoredisPipeline {
  evalsha(sha1: string, numberOfKeys: number, ...inputs: string[]): IoredisPipeline;
  call(command: string, ...inputs: string[]): IoredisPipeline;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** How often each client has lost its connection; counted while there is a store on it. */
const lossesOf = new WeakMap<IoredisClient, { count: number; lastError?: string | undefined }>();

/**
 * A store on one ioredis or iovalkey client.
 *
 * The client sends again what was in flight when it lost its connection (unless told otherwise), so a script
 * may run twice and a refusal then speaks of the second time only; `mayHaveRun` takes that into account.
 *
 * @param openSubscriber  makes the connection that listens; by default a duplicate of `redis`
 * @param terms    what has to be so for a grant to count
 */
export function ioredisStore(redis: IoredisClient, openSubscriber?: OpenSubscriber, terms: Terms = {}): Store {
  const losses = lossesOf.get(redis) ?? { count: 0 };
  lossesOf.set(redis, losses);
  let isCorked = false;

  /**
   * What is sent in one turn leaves in one write: the answers of many calls come in together, and so what follows
   * them is sent together. Costs a lone call nothing, since a turn ends before anything else can happen.
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
      // WAIT speaks of what its own connection has written: a new one has written nothing.
      if (losses.count !== lossesBefore) throw new Error("the connection was lost before replicas acknowledged");
      return [ran?.[1], Number(waited?.[1])];
    },
    isClosed: () => isGone(redis),
    noConnection: () => (redis.status === "ready" ? undefined : placeOf(ioredisServer(redis), losses.lastError)),
    losses: () => losses.count,
  };

  function watch(onBack: () => void): () => void {
    let isLost = false;
    const onClose = (): void => {
      losses.count += 1;
      isLost = true;
    };
    const onReady = (): void => {
      if (isLost) onBack();
      isLost = false;
    };
    const onError = (error: unknown): void => {
      losses.lastError = messageOf(error);
    };
    redis.on("close", onClose);
    redis.on("ready", onReady);
    // The monitor hears errors without being taken for a listener, in whose absence the library prints them.
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
    inboxes:
      openSubscriber === undefined
        ? overSharedSubscriber(redis, openIoredisSubscriber(redis))
        : overOneSubscriber(openSubscriber),
    watch: sharedWatch(redis, watch),
    terms,
    server: () => ioredisServer(redis),
    clientTimeouts: () => ioredisTimeouts(redis.options),
  });
}

/** What the options of a client, or of the nodes of a cluster, say about dead connections. */
export function ioredisTimeouts({
  socketTimeout,
  keepAlive,
}: Pick<NonNullable<IoredisClient["options"]>, "socketTimeout" | "keepAlive"> = {}): ClientTimeouts {
  return {
    library: "ioredis",
    socketTimeoutMs: socketTimeout,
    // 0 leaves it to the operating system, which waits for two hours.
    keepAliveMs: keepAlive || undefined,
    cure: socketTimeout === undefined ? "set the option socketTimeout of the client to about 5000" : undefined,
  };
}

/** Listens on `subscriber`, a connection that from now on does nothing else. */
export function ioredisSubscriber(subscriber: IoredisClient, events: SubscriberEvents): Subscriber {
  // Without a listener the library prints the error; what matters of it comes as a rejection or as `end`.
  subscriber.on("error", () => {});
  subscriber.on("message", (channel = "", message = "") => events.onMessage(channel, message));
  subscriber.on("ready", () => events.onReady());
  subscriber.on("end", () => events.onEnd());
  // Who waits has a timer of its own. An idle subscriber connection must not keep the process alive.
  subscriber.on("connect", () => subscriber.stream?.unref?.());
  subscriber.stream?.unref?.();
  return {
    subscribe: (channels) => subscriber.subscribe(...channels),
    unsubscribe: (channel) => subscriber.unsubscribe(channel),
    close() {
      // Disconnecting a client that has ended starts a timer that keeps the process alive for two seconds.
      if (subscriber.status !== "end") subscriber.disconnect();
    },
  };
}

/** Behind Sentinel it is the socket that knows who the master is. */
function ioredisServer({ options, stream }: IoredisClient): ServerAddress | undefined {
  const { host, port, path, sentinels } = options ?? {};
  if (sentinels === undefined || sentinels === null) {
    if (typeof path === "string") return { host: path, port: undefined };
    return host === undefined ? undefined : { host, port };
  }
  const address = stream?.remoteAddress;
  return address === undefined ? undefined : { host: address, port: stream?.remotePort };
}

/** Keys and arguments as the library takes them. */
export function inputsOf(keys: readonly string[], args: readonly (string | number)[]): string[] {
  const inputs: string[] = [...keys];
  for (const arg of args) inputs.push(toArgument(arg));
  return inputs;
}

/** A connection like that of `redis`, but one that only listens, and does not give up while `redis` has not. */
function openIoredisSubscriber(redis: IoredisClient): OpenSubscriber {
  return (events) => ioredisSubscriber(redis.duplicate(ioredisSubscriberOptions(redis)), events);
}

/** What a user sets for commands can break a connection that listens for hours and sends next to nothing. */
export const LISTENING: Readonly<Record<string, unknown>> = {
  lazyConnect: false,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  // `socketTimeout` is kept: it runs only while a command has no reply, so an idle connection outlives it.
  // The library's own does not report failure: an unhandled rejection. The hub does it.
  autoResubscribe: false,
  autoResendUnfulfilledCommands: true,
  scripts: undefined,
  monitor: false,
};

/**
 * Whether the owner has closed it. A client that is disconnected while it waits to reconnect stays in that status forever; only a
 * field of the library's own, `manuallyClosing`, tells.
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
