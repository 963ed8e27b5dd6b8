/** Every store the contracts run on. A new store is one row here, and one file in tests/contract. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { GlideClient, GlideClusterClient } from "@valkey/valkey-glide";
import { Cluster as Cluster6, Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Redis as Iovalkey } from "iovalkey";
import {
  createClient as createClient6,
  createCluster as createCluster6,
  createSentinel as createSentinel6,
} from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";
import { afterAll } from "vitest";
import { startCluster } from "../../../tests/support/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../../../tests/support/redis-sentinel.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import { startTlsRedis } from "../../../tests/support/tls-server.js";
import type { HoldfastOptions } from "../src/holdfast.js";
import { storeFor } from "../src/stores/detect.js";
import type { ServerUnderTest, StoreUnderTest } from "../src/testing/index.js";
import { CLIENTS_IN_A_CLUSTER, IN_A_CLUSTER, ON_ONE_SERVER, permit, type Rules } from "./permissions/acl.js";

/** Connects one client to the server at `port` and returns a function that closes it. */
type Connect = (port: number) => Promise<{ options: HoldfastOptions; close: () => unknown }>;

/**
 * Returns the same servers without the failover grace. With it, newly started servers would stay out of a quorum for as
 * long as the longest lease (see tests/redlock/restart.test.ts).
 */
export function asStores(subject: StoreUnderTest): StoreUnderTest {
  return {
    ...subject,
    async start() {
      const server = await subject.start();
      return {
        ...server,
        async connect() {
          const { redis, store, subscriber } = await server.connect();
          const own = subscriber && (() => subscriber(0));
          return { store: store ?? storeFor(redis, own === undefined ? {} : { subscriber: own }) };
        },
      };
    },
  };
}

/** The registry of stores under test. */
export const stores: readonly StoreUnderTest[] = [
  { name: "embedded", start: startEmbedded },
  onRedis("ioredis 6", async (port) => ioredis(new Redis6({ port }))),
  onRedis("ioredis 5", async (port) => ioredis(new Redis5({ port }))),
  onRedis("ioredis 6 with a key prefix", async (port) => ioredis(new Redis6({ port, keyPrefix: "app:" })), "app:"),
  onRedis("ioredis 6 with minimal permissions", async (port) => {
    const user = await leastRights([port], ON_ONE_SERVER);
    return ioredis(new Redis6({ port, ...user }));
  }),
  onRedis("iovalkey", async (port) => ioredis(new Iovalkey({ port }))),
  onRedis("node-redis 6", async (port) => nodeRedis(createClient6({ url: `redis://127.0.0.1:${port}` }))),
  onRedis("node-redis 5", async (port) => nodeRedis(createClient5({ url: `redis://127.0.0.1:${port}` }))),
  onRedis("node-redis 4", async (port) => nodeRedis(createClient4({ url: `redis://127.0.0.1:${port}` }))),
  onRedis("GLIDE", glide),
  overTls("ioredis 6 over TLS", async (port, tls, user) =>
    ioredis(new Redis6({ host: "127.0.0.1", port, tls, ...user })),
  ),
  overTls("node-redis 6 over TLS", async (port, tls, user) =>
    nodeRedis(createClient6({ socket: { port, host: "127.0.0.1", tls: true, ...tls }, ...user })),
  ),
  onCluster("ioredis 6 on a cluster", async (ports) => ioredis(new Cluster6(addresses(ports)))),
  onCluster("ioredis 6 on a cluster with minimal permissions", async (ports) => {
    const user = await leastRights(ports, [...ON_ONE_SERVER, ...IN_A_CLUSTER, ...CLIENTS_IN_A_CLUSTER]);
    return ioredis(new Cluster6(addresses(ports), { redisOptions: user }));
  }),
  onCluster("node-redis 6 on a cluster", async (ports) =>
    nodeRedis(createCluster6({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })),
  ),
  onCluster("GLIDE on a cluster", glideCluster),
  onSentinel("ioredis 6 behind Sentinel", async ({ addresses: sentinels, name }) =>
    ioredis(new Redis6({ sentinels: [...sentinels], name })),
  ),
  onSentinel("node-redis 6 behind Sentinel", async ({ addresses: sentinels, name }) =>
    nodeRedis(createSentinel6({ name, sentinelRootNodes: [...sentinels] })),
  ),
];

/** Creates the user of docs/permissions.md on each server if it is missing. */
async function leastRights(ports: readonly number[], rules: Rules): Promise<{ username: string; password: string }> {
  for (const port of ports) {
    const admin = new Redis6({ port });
    // The contract also uses a key with a name outside the prefix, which needs its own pattern.
    // `query` of web locks lists all locks.
    await permit({ command: (...words) => admin.call(...(words as [string])) }, "locks", [
      ...rules,
      "~legacy:*",
      "+scan",
    ]);
    admin.disconnect();
  }
  return { username: "locks", password: "secret" };
}

interface TlsOptions {
  readonly ca: string;
}
interface Login {
  readonly username: string;
  readonly password: string;
}

/** A store on connections that are encrypted, as a user with a password and minimal permissions. */
function overTls(
  name: string,
  connect: (port: number, tls: TlsOptions, user: Login) => ReturnType<Connect>,
): StoreUnderTest {
  const authorities = new Map<number, { readonly tlsPort: number; readonly ca: string }>();
  const start = async () => {
    const { server, tlsPort, ca, stop } = await startTlsRedis("any");
    authorities.set(server.port, { tlsPort, ca });
    return { port: server.port, stop };
  };
  return onRedis(
    name,
    async (port) => {
      const { tlsPort, ca } = authorities.get(port) ?? { tlsPort: 0, ca: "" };
      return connect(tlsPort, { ca }, await leastRights([port], ON_ONE_SERVER));
    },
    "",
    start,
  );
}

function onRedis(
  name: string,
  connect: Connect,
  keyPrefix = "",
  startServer: () => Promise<{ readonly port: number; stop(): Promise<void> }> = startRedis,
): StoreUnderTest {
  return {
    name,
    async start(): Promise<ServerUnderTest> {
      const server = await startServer();
      const observer = new Redis6({ port: server.port });
      const closers: (() => unknown)[] = [() => observer.disconnect()];
      return {
        async connect() {
          const { options, close } = await connect(server.port);
          closers.push(close);
          return options;
        },
        keysWith: async (text) => (await observer.keys("*")).filter((key) => key.includes(text)),
        pttl: (key) => observer.pttl(key),
        setNx: async (key, value, leaseMs) =>
          (await observer.set(keyPrefix + key, value, "PX", leaseMs, "NX")) === "OK",
        async delete(...keys) {
          await observer.del(...keys);
        },
        async stop() {
          await Promise.all(closers.map((close) => close()));
          await server.stop();
        },
      };
    },
  };
}

/** Topologies that take seconds to start. All suites of a test file share them. */
const topologies = new Map<string, Promise<{ stop(): Promise<void> }>>();
afterAll(async () => {
  for (const topology of topologies.values()) await (await topology).stop();
});

function shared<Topology extends { stop(): Promise<void> }>(
  name: string,
  start: () => Promise<Topology>,
): Promise<Topology> {
  const running = topologies.get(name) ?? start();
  topologies.set(name, running);
  return running as Promise<Topology>; // the same row put it there
}

/** A store on a cluster of three masters and their replicas. */
function onCluster(
  name: string,
  connect: (ports: readonly number[]) => Promise<{ options: HoldfastOptions; close: () => unknown }>,
): StoreUnderTest {
  return {
    name,
    async start(): Promise<ServerUnderTest> {
      // A long timeout, because a busy machine that freezes briefly must not trigger a failover.
      const cluster = await shared(name, () => startCluster({ nodeTimeoutMs: 15_000 }));
      const observer = new Cluster6(addresses(cluster.ports));
      observer.on("error", () => {});
      // Some suites use the same lock names.
      await Promise.all((await cluster.masters()).map((master) => master.command("FLUSHALL")));
      const closers: (() => unknown)[] = [() => observer.disconnect()];
      return {
        async connect() {
          const { options, close } = await connect(cluster.ports);
          closers.push(close);
          return options;
        },
        async keysWith(text) {
          const keys = await Promise.all(observer.nodes("master").map((node) => node.keys("*")));
          return keys.flat().filter((key) => key.includes(text));
        },
        pttl: (key) => observer.pttl(key),
        setNx: async (key, value, leaseMs) => (await observer.set(key, value, "PX", leaseMs, "NX")) === "OK",
        async delete(...keys) {
          await Promise.all(keys.map((key) => observer.del(key)));
        },
        async stop() {
          await Promise.all(closers.map((close) => close()));
        },
      };
    },
  };
}

/** A store on a master with two replicas, found via three sentinels. */
function onSentinel(
  name: string,
  connect: (topology: RedisSentinel) => Promise<{ options: HoldfastOptions; close: () => unknown }>,
): StoreUnderTest {
  return {
    name,
    async start(): Promise<ServerUnderTest> {
      // A long timeout, because a busy machine that freezes briefly must not trigger a failover.
      const topology = await shared(name, () => startSentinel({ downAfterMs: 60_000 }));
      const observer = new Redis6({ sentinels: [...topology.addresses], name: topology.name });
      observer.on("error", () => {});
      await observer.flushall();
      const closers: (() => unknown)[] = [() => observer.disconnect()];
      return {
        async connect() {
          const { options, close } = await connect(topology);
          closers.push(close);
          return options;
        },
        keysWith: async (text) => (await observer.keys("*")).filter((key) => key.includes(text)),
        pttl: (key) => observer.pttl(key),
        setNx: async (key, value, leaseMs) => (await observer.set(key, value, "PX", leaseMs, "NX")) === "OK",
        async delete(...keys) {
          await observer.del(...keys);
        },
        async stop() {
          await Promise.all(closers.map((close) => close()));
        },
      };
    },
  };
}

function addresses(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}

async function glideCluster(ports: readonly number[]): Promise<{ options: HoldfastOptions; close: () => void }> {
  const make = (): Promise<GlideClusterClient> =>
    GlideClusterClient.createClient({ addresses: addresses(ports), requestTimeout: 5_000 });
  const redis = await make();
  return { options: { redis, subscriber: make }, close: () => redis.close() };
}

function ioredis(redis: { on(event: "error", listener: () => void): unknown; disconnect(): void } & object): {
  options: HoldfastOptions;
  close: () => void;
} {
  redis.on("error", () => {});
  return { options: { redis }, close: () => redis.disconnect() };
}

async function nodeRedis(client: {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  disconnect?(): unknown;
  destroy?(): void;
}): Promise<{ options: HoldfastOptions; close: () => unknown }> {
  client.on("error", () => {});
  await client.connect();
  return { options: { redis: client }, close: () => (client.destroy ? client.destroy() : client.disconnect?.()) };
}

async function glide(port: number): Promise<{ options: HoldfastOptions; close: () => void }> {
  const addresses = [{ host: "127.0.0.1", port }];
  const redis = await GlideClient.createClient({ addresses, requestTimeout: 5_000 });
  return {
    options: { redis, subscriber: () => GlideClient.createClient({ addresses, requestTimeout: 5_000 }) },
    close: () => redis.close(),
  };
}

async function startEmbedded(): Promise<ServerUnderTest> {
  const keyspace = new Keyspace();
  const foreign = embedded({ keyspace });
  const evaluate = (source: string, keys: string[], args: (string | number)[]) =>
    foreign.run({ name: "test", sha1: source, keys: [], args: [], replies: [], source }, keys, args, 1_000);
  return {
    connect: async () => ({ store: embedded({ keyspace }) }),
    keysWith: async (text) => keyspace.keys().filter((key) => key.includes(text)),
    pttl: async (key) => keyspace.pttl(key),
    setNx: async (key, value, leaseMs) =>
      (await evaluate(
        "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0",
        [key],
        [value, leaseMs],
      )) === 1,
    async delete(...keys) {
      await Promise.all(keys.map((key) => evaluate("return redis.call('DEL', KEYS[1])", [key], [])));
    },
    stop: () => foreign.close(),
  };
}
