/** Finds the servers behind the clients of a program. The doctor opens separate connections to each server. */
import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Topology } from "./facts.js";

/** One server, and how to connect to it directly. */
export interface Target {
  /** `host:port`. */
  readonly node: string;
  /** The options of a plain connection: credentials, TLS, database. */
  readonly options: RedisOptions;
  /** Whether the URL leads to this server. False for a replica that its primary reported. */
  readonly isGiven: boolean;
}

/**
 * The part of a connection that the doctor needs. `Connection` of the command line implements it; the console passes
 * its own object.
 */
export interface Deployment {
  readonly topology: Topology;
  readonly clients: readonly (Redis | Cluster)[];
}

/**
 * Returns the servers that the clients lead to. Replicas are added later, when primaries report them.
 *
 * @throws Error  no Sentinel returned an address for the primary, or the cluster client knows no node
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

/** A target for another server with the same credentials. */
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

/**
 * Creates a connection for the doctor. It tries to connect only once, does not queue commands, and changes no state on
 * the server.
 */
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
  // Each command reports its own error. Without a listener the client library prints errors.
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
  throw new Error(`no Sentinel returned an address for primary ${name}`, { cause: last });
}
