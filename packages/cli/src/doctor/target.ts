/** From the clients of a program to the servers behind them, each of which is looked at on connections of its own. */
import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Topology } from "./facts.js";

/** One server, and how to connect to that very one. */
export interface Target {
  /** `host:port`. */
  readonly node: string;
  /** Of a plain connection: credentials, TLS, database. */
  readonly options: RedisOptions;
  /** Whether the URL leads here, and not only a replica's primary. */
  readonly isGiven: boolean;
}

/** A way to locks, as `Connection` of the command line is one; a console has another. */
export interface Deployment {
  readonly topology: Topology;
  readonly clients: readonly (Redis | Cluster)[];
}

/**
 * The servers that the clients lead to. Replicas are met later, where primaries tell of them.
 *
 * @throws Error  no Sentinel names the primary, or the cluster's client knows no node
 */
export async function targetsOf({ topology, clients }: Deployment): Promise<readonly Target[]> {
  const [first] = clients;
  if (first instanceof Cluster) {
    const nodes = first.nodes("all");
    if (nodes.length === 0) throw new Error("the client of the cluster knows none of its nodes");
    return nodes.map((node) => targetOn(plainOf(node.options), true));
  }
  if (topology === "sentinel" && first !== undefined) {
    const { host, port } = await primaryBySentinels(first.options);
    return [targetOn({ ...plainOf(first.options), host, port }, true)];
  }
  return clients.flatMap((client) => (client instanceof Cluster ? [] : [targetOn(plainOf(client.options), true)]));
}

/** Another server with the same credentials. */
export function beside({ options }: Target, host: string, port: number): Target {
  const { path: _, ...rest } = options;
  return targetOn({ ...rest, host, port }, false);
}

function targetOn(options: RedisOptions, isGiven: boolean): Target {
  const { path, host = "127.0.0.1", port = 6_379 } = options;
  return { node: path ?? `${host.includes(":") ? `[${host}]` : host}:${port}`, options, isGiven };
}

function plainOf({ sentinels: _s, name: _n, role: _r, keyPrefix: _k, ...options }: RedisOptions): RedisOptions {
  return options;
}

/** What connections of the doctor have in common: they try once, wait for nothing else, and change no state of theirs. */
export function once(
  options: RedisOptions,
  timeouts: { readonly connectMs: number; readonly commandMs: number },
): Redis {
  const { keyPrefix: _k, sentinels: _s, name: _n, connectionName: _c, replyMapping: _m, ...plain } = options;
  const redis = new Redis({
    ...plain,
    protocol: 2,
    disableClientInfo: true,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    readOnly: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    reconnectOnError: () => false,
    connectTimeout: timeouts.connectMs,
    commandTimeout: timeouts.commandMs,
  });
  // What matters of them each call tells; without a listener the library prints them.
  redis.on("error", () => {});
  return redis;
}

const SENTINEL_MS = 2_000;

async function primaryBySentinels(options: RedisOptions): Promise<{ host: string; port: number }> {
  const {
    sentinels = [],
    name = "",
    sentinelUsername,
    sentinelPassword,
    sentinelTLS,
    enableTLSForSentinelMode,
  } = options;
  let last: unknown;
  for (const { host, port } of sentinels) {
    const sentinel = once(
      {
        ...(host === undefined ? {} : { host }),
        port: port ?? 26_379,
        ...(sentinelUsername == null ? {} : { username: sentinelUsername }),
        ...(sentinelPassword == null ? {} : { password: sentinelPassword }),
        ...(enableTLSForSentinelMode === true ? { tls: sentinelTLS ?? {} } : {}),
      },
      { connectMs: SENTINEL_MS, commandMs: SENTINEL_MS },
    );
    try {
      await sentinel.connect();
      const address = await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name);
      if (Array.isArray(address)) return { host: String(address[0]), port: Number(address[1]) };
      last = new Error(`a Sentinel knows no primary called ${name}`);
    } catch (error) {
      last = error;
    } finally {
      sentinel.disconnect();
    }
  }
  throw new Error(`no Sentinel names the primary ${name}`, { cause: last });
}
