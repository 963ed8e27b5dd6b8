/** Facts as servers of several versions report them, from their documentation and from Redis 7.0.15. */
import type { NodeFacts } from "../../src/doctor/facts.js";
import { parseInfo } from "../../src/doctor/read/info.js";

/** INFO of a primary without replicas, limited to the fields that checks read. */
const COMMON = `
# Server
run_id:231ea428d6b74c131876cc84a46b8072c27e50e1
tcp_port:6379
uptime_in_seconds:864000

# Clients
connected_clients:42

# Memory
used_memory:40000000
maxmemory:100000000
maxmemory_policy:noeviction

# Persistence
loading:0
rdb_last_bgsave_status:ok
aof_enabled:1
aof_last_bgrewrite_status:ok
aof_last_write_status:ok

# Stats
evicted_keys:0

# Replication
role:master
connected_slaves:0
master_replid:d67e768ad7858c848b43631e68a1328bb1a8ec1b
master_replid2:0000000000000000000000000000000000000000
master_repl_offset:5000000
`;

const VERSIONS = {
  "Redis 6.0": "redis_version:6.0.16\nredis_mode:standalone",
  "Redis 6.2": "redis_version:6.2.14\nredis_mode:standalone\nmaxclients:10000",
  "Redis 7.0": "redis_version:7.0.15\nredis_mode:standalone\nmaxclients:10000",
  "Redis 7.2": "redis_version:7.2.4\nredis_mode:standalone\nmaxclients:10000",
  "Redis 8": "redis_version:8.0.2\nredis_mode:standalone\nmaxclients:10000",
  // Valkey also reports the version of Redis that it is compatible with.
  "Valkey 8": "redis_version:7.2.4\nserver_name:valkey\nvalkey_version:8.1.1\nserver_mode:standalone\nmaxclients:10000",
} as const;

/** The versions that have samples. */
export type Version = keyof typeof VERSIONS;

/** All versions that have samples. */
export const ALL_VERSIONS = Object.keys(VERSIONS) as readonly Version[];

/** The CONFIG GET reply of a server that is configured for locks. */
const CONFIG: Readonly<Record<string, string>> = {
  "maxmemory-policy": "noeviction",
  maxmemory: "100000000",
  appendonly: "yes",
  appendfsync: "always",
  save: "3600 1 300 100 60 10000",
  "stop-writes-on-bgsave-error": "yes",
  "min-replicas-to-write": "0",
  "min-replicas-max-lag": "10",
  "protected-mode": "yes",
  bind: "10.0.0.5",
  requirepass: "set",
  maxclients: "10000",
  timeout: "0",
  "tcp-keepalive": "60",
};

/** Differences from a server without problems. */
export interface Otherwise extends Partial<Omit<NodeFacts, "info" | "config">> {
  /** Fields that replace those of the version; undefined removes a field. */
  readonly info?: Readonly<Record<string, string | undefined>>;
  readonly config?: Readonly<Record<string, string | undefined>>;
}

/** Facts of a server without problems, except for the given differences. */
export function facts(version: Version, { info = {}, config = {}, ...rest }: Otherwise = {}): NodeFacts {
  const limit =
    VERSIONS[version].startsWith("redis_version:7.0") || version === "Redis 6.2" || version === "Redis 6.0"
      ? "lua-time-limit"
      : "busy-reply-threshold";
  return {
    node: "10.0.0.5:6379",
    topology: "single",
    isGiven: true,
    isLocal: false,
    role: "master",
    user: "locks",
    anonymous: "refused",
    clock: { offsetMs: 3, uncertaintyMs: 1, serverRanMs: 201, clientRanMs: 200 },
    inbox: { isSharded: false, receivers: 1, arrivedMs: 2 },
    keys: {
      seen: 10,
      total: 10,
      isComplete: true,
      others: [],
      withoutExpiry: [],
      strange: [],
      mistyped: [],
      waiting: [],
      clients: [],
    },
    latency: { count: 200, p50Ms: 0.4, p99Ms: 2, maxMs: 5 },
    lineage: {
      run: "231ea428d6b74c131876cc84a46b8072c27e50e1",
      isPromoted: false,
      upMs: 864_000_000,
      nowMs: 1_795_000_000_000,
      marker: { run: "231ea428d6b74c131876cc84a46b8072c27e50e1", sinceMs: 0, longestMs: 30_000 },
    },
    pauses: { nowMs: 1_795_000_000_000, histories: 3, recorded: [] },
    permissions: { missing: [], forbidden: [], untried: new Map() },
    scripts: { loaded: 48, refused: [] },
    slow: { entries: [], spikes: [] },
    flushers: [],
    hidden: new Map(),
    ...rest,
    info: changed(parseInfo(`${VERSIONS[version]}${COMMON}`), info),
    config: changed(new Map([...Object.entries(CONFIG), [limit, "5000"]]), config),
  };
}

/** Facts of a managed service, which allows INFO but not CONFIG. */
export function managed(version: Version, otherwise: Otherwise = {}): NodeFacts {
  return {
    ...facts(version, otherwise),
    config: new Map(),
    hidden: new Map([["CONFIG", "ERR unknown command 'CONFIG'"]]),
  };
}

/** Facts of a server that answers but refuses every reading. */
export function closedUp(): NodeFacts {
  const { node, topology, isGiven, isLocal } = facts("Redis 7.0");
  const refusal = "NOPERM this user has no permissions to run the 'info' command";
  return { node, topology, isGiven, isLocal, info: new Map(), config: new Map(), hidden: new Map([["INFO", refusal]]) };
}

function changed(
  map: ReadonlyMap<string, string>,
  changes: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  const copy = new Map(map);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) copy.delete(name);
    else copy.set(name, value);
  }
  return copy;
}
