import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import type { Script } from "../../src/core/store.js";

/** A script without a file, for store tests. */
export function scriptOf(name: string, source: string): Script {
  return {
    name,
    source,
    sha1: createHash("sha1").update(source).digest("hex"),
    keys: ["key"],
    args: [],
    replies: [],
  };
}

export const ECHO: Script = scriptOf("test/echo", "return {3, ARGV[1], false, 'tail', KEYS[1]}");
export const COUNT: Script = scriptOf("test/count", "return redis.call('INCR', KEYS[1])");
export const RAISE: Script = scriptOf(
  "test/raise",
  "redis.call('SET', KEYS[1], 'x') return redis.call('LPUSH', KEYS[1], 1)",
);
export const LARGE: Script = scriptOf("test/large", "return 1700000000000001");

/** One client library, or one way to set it up. */
export interface Row {
  readonly name: string;
  readonly kind: string;
  /** The prefix that the library adds to keys. */
  readonly keyPrefix: string;
  /** Whether the library resends a command whose reply was lost. */
  readonly sendsAgain: boolean;
  /** Whether the library reports lost connections. */
  readonly hasEvents: boolean;
  /** Creates a client that is connected or connects by itself. */
  connect(port: number): Promise<object>;
  /** The user's `subscriber` option; undefined if it is not needed. */
  subscriber(port: number): (() => Promise<object>) | undefined;
  disconnect(client: object): Promise<void>;
  /** Sends a plain command, to check that the client still works. */
  ping(client: object): Promise<unknown>;
  /** Number of event listeners on the client, by event. */
  listeners(client: object): Record<string, number>;
}

const require = createRequire(import.meta.url);
const IOREDIS_EVENTS = ["close", "ready", "error", "message", "end", "connect", "reconnecting"];

// The types of the libraries are incompatible, and the store does not use them either.
interface AnyClient {
  readonly status?: string;
  connect(): Promise<unknown>;
  disconnect(): unknown;
  destroy?(): unknown;
  close(): unknown;
  ping(): Promise<unknown>;
  customCommand(words: string[]): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
  listenerCount(event: string): number;
}

function counts(client: object): Record<string, number> {
  return Object.fromEntries(IOREDIS_EVENTS.map((event) => [event, (client as AnyClient).listenerCount(event)]));
}

function ioredisRow(
  name: string,
  packageName: string,
  options: { readonly maxRetriesPerRequest?: number; readonly [name: string]: unknown } = {},
  keyPrefix = "",
): Row {
  const { Redis } = require(packageName) as { Redis: new (options: object) => AnyClient };
  return {
    name,
    kind: "ioredis",
    keyPrefix,
    sendsAgain: options.maxRetriesPerRequest !== 0,
    hasEvents: true,
    async connect(port) {
      const client = new Redis({
        host: "127.0.0.1",
        port,
        retryStrategy: () => 20,
        ...options,
        ...(keyPrefix === "" ? {} : { keyPrefix }),
      });
      client.on("error", () => {});
      return client;
    },
    subscriber: () => undefined,
    disconnect: async (client) => void (client as AnyClient).disconnect(),
    ping: (client) => (client as AnyClient).ping(),
    listeners: counts,
  };
}

function nodeRedisRow(name: string, packageName: string, options: object = {}): Row {
  const { createClient } = require(packageName) as { createClient(options: object): AnyClient };
  return {
    name,
    kind: "node-redis",
    keyPrefix: "",
    sendsAgain: false,
    hasEvents: true,
    async connect(port) {
      const client = createClient({
        socket: { host: "127.0.0.1", port, reconnectStrategy: () => 20 },
        ...options,
      });
      client.on("error", () => {});
      await client.connect();
      return client;
    },
    subscriber: () => undefined,
    async disconnect(client) {
      const any = client as AnyClient;
      if (any.destroy) any.destroy();
      else await any.disconnect();
    },
    ping: (client) => (client as AnyClient).ping(),
    listeners: counts,
  };
}

function nodeRedisPoolRow(): Row {
  const { createClient, createClientPool } = require("redis") as {
    createClient(options: object): AnyClient;
    createClientPool(options: object): AnyClient;
  };
  const optionsFor = (port: number): object => ({
    socket: { host: "127.0.0.1", port, reconnectStrategy: () => 20 },
  });
  return {
    ...nodeRedisRow("", "redis"),
    name: "node-redis 6 pool",
    // Each connection of a pool reconnects by itself, and the pool does not report it.
    hasEvents: false,
    async connect(port) {
      const pool = createClientPool(optionsFor(port));
      pool.on("error", () => {});
      await pool.connect();
      return pool;
    },
    subscriber: (port) => async () => createClient(optionsFor(port)),
  };
}

function glideRow(): Row {
  const { GlideClient, Logger } = require("@valkey/valkey-glide") as {
    GlideClient: { createClient(options: object): Promise<AnyClient> };
    Logger: { init(level: string): void };
  };
  Logger.init("off");
  const connect = (port: number): Promise<AnyClient> =>
    GlideClient.createClient({
      addresses: [{ host: "127.0.0.1", port }],
      requestTimeout: 5_000, // its own is 250 ms, which a busy machine exceeds
      connectionBackoff: { numberOfRetries: 5, factor: 10, exponentBase: 2 },
    });
  return {
    name: "GLIDE 2.5",
    kind: "glide",
    keyPrefix: "",
    sendsAgain: false,
    hasEvents: false,
    connect,
    subscriber: (port) => () => connect(port),
    disconnect: async (client) => void (client as AnyClient).close(),
    ping: (client) => (client as AnyClient).customCommand(["PING"]),
    listeners: () => ({}),
  };
}

/** Every client library that Holdfast supports, and the setups that could make a difference. */
export const ROWS: readonly Row[] = [
  ioredisRow("ioredis 6", "ioredis"),
  ioredisRow("ioredis 6 with keyPrefix", "ioredis", {}, "app:"),
  // Options that a user may set but that must not reach the subscriber connection.
  ioredisRow("ioredis 6 with other options", "ioredis", {
    stringNumbers: true,
    lazyConnect: true,
    enableAutoPipelining: true,
    maxRetriesPerRequest: 0,
    commandTimeout: 5_000,
  }),
  ioredisRow("ioredis 5", "ioredis5"),
  ioredisRow("iovalkey", "iovalkey"),
  nodeRedisRow("node-redis 6", "redis"),
  nodeRedisRow("node-redis 6 with RESP2", "redis", { RESP: 2 }),
  // Returns blobs as Buffers and integers as strings.
  nodeRedisRow("node-redis 6 with a type mapping", "redis", {
    commandOptions: { typeMapping: { 36: Buffer, 58: String } },
  }),
  nodeRedisPoolRow(),
  nodeRedisRow("node-redis 5", "redis5"),
  nodeRedisRow("node-redis 4", "redis4"),
  glideRow(),
];
