/** Setup for cluster and Sentinel tests: clients of a shared topology, and workers that detect overlapping holds. */
import { randomUUID } from "node:crypto";
import { GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5 } from "ioredis5";
import { Cluster as IovalkeyCluster } from "iovalkey";
import { createCluster, createSentinel } from "redis";
import { createCluster as createCluster4 } from "redis4";
import { createCluster as createCluster5, createSentinel as createSentinel5 } from "redis5";
import { afterEach, beforeEach } from "vitest";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "../../src/index.js";
import { LONG_MS, sleep } from "../../src/testing/delays.js";

// Without this, GLIDE logs every lost connection to standard output, and these tests lose connections on purpose.
Logger.setLoggerConfig("off");

/** One client library: connects a client to the topology that `Place` describes. */
export interface Library<Place> {
  readonly name: string;
  /** The library keeps sending to a crashed master until it replies, so all callers with a key there are stuck. */
  readonly clingsToTheDead?: true;
  connect(place: Place): Promise<{ options: HoldfastOptions; disconnect: () => unknown }>;
}

type Ports = readonly number[];
interface Sentinels {
  readonly name: string;
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
}

interface Closable {
  on(event: "error", listener: () => void): unknown;
}

function hosts(ports: Ports): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}

function quiet<Client extends Closable & { disconnect(): void }>(
  redis: Client,
): { options: HoldfastOptions; disconnect: () => void } {
  redis.on("error", () => {});
  return { options: { redis }, disconnect: () => redis.disconnect() };
}

async function connected(
  redis: Closable & { connect(): Promise<unknown>; destroy?(): unknown; disconnect?(): unknown },
): Promise<{ options: HoldfastOptions; disconnect: () => unknown }> {
  redis.on("error", () => {});
  await redis.connect();
  return { options: { redis }, disconnect: () => (redis.destroy ? redis.destroy() : redis.disconnect?.()) };
}

function nodes(ports: Ports): { rootNodes: { url: string }[] } {
  return { rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) };
}

/** Cluster clients that every test runs on. */
export const clusters: readonly Library<Ports>[] = [
  { name: "ioredis 6", connect: async (ports) => quiet(new Cluster(hosts(ports))) },
  { name: "node-redis 6", connect: (ports) => connected(createCluster(nodes(ports))) },
  {
    name: "GLIDE",
    async connect(ports) {
      const make = () => GlideClusterClient.createClient({ addresses: hosts(ports), requestTimeout: 2_000 });
      const redis = await make();
      return { options: { redis, subscriber: make }, disconnect: () => redis.close() };
    },
  },
];

/** Older versions and forks. */
export const olderClusters: readonly Library<Ports>[] = [
  { name: "ioredis 5", connect: async (ports) => quiet(new Cluster5(hosts(ports))) },
  { name: "iovalkey", connect: async (ports) => quiet(new IovalkeyCluster(hosts(ports))) },
  { name: "node-redis 5", clingsToTheDead: true, connect: (ports) => connected(createCluster5(nodes(ports))) },
  { name: "node-redis 4", connect: (ports) => connected(createCluster4(nodes(ports))) },
];

/** Clients behind Sentinel. */
export const sentinels: readonly Library<Sentinels>[] = [
  {
    name: "ioredis 6",
    connect: async ({ addresses, name }) => quiet(new Redis({ sentinels: [...addresses], name })),
  },
  {
    name: "node-redis 6",
    connect: ({ addresses, name }) => connected(createSentinel({ name, sentinelRootNodes: [...addresses] })),
  },
];

/** These cannot be duplicated, so the user supplies a separate subscriber client. */
export const olderSentinels: readonly Library<Sentinels>[] = [
  {
    name: "node-redis 5 with a subscriber",
    async connect({ addresses, name }) {
      const make = () => createSentinel5({ name, sentinelRootNodes: [...addresses] });
      const { options, disconnect } = await connected(make());
      return { options: { ...options, subscriber: make }, disconnect };
    },
  },
];

/** Closes all clients after each test, and gives each test a unique lock name. */
export function useClients(): {
  name: string;
  client<Place>(library: Library<Place>, place: Place, options?: Partial<HoldfastOptions>): Promise<Holdfast>;
} {
  const closers: (() => unknown)[] = [];
  const scene = {
    name: "",
    async client<Place>(library: Library<Place>, place: Place, options: Partial<HoldfastOptions> = {}) {
      const { options: own, disconnect } = await library.connect(place);
      const holdfast = createHoldfast({ failoverGrace: "off", ...own, ...options });
      closers.push(async () => {
        await holdfast.close();
        await disconnect();
      });
      return holdfast;
    },
  };
  beforeEach(() => {
    scene.name = `t:${randomUUID()}`;
  });
  afterEach(async () => {
    await Promise.all(closers.splice(0).map((close) => close()));
  });
  return scene;
}

/** The findings of the workers. */
export interface Sightings {
  /** Number of times that a worker held a lock while another worker held it. */
  readonly overlaps: number;
  /** Tokens, in the order in which the holds began. */
  readonly tokens: Readonly<Record<string, readonly number[]>>;
  /**
   * Longest time in ms that a lock was free while a worker waited, minus the time for which this process was stalled.
   */
  readonly longestIdleMs: number;
  readonly sections: number;
  readonly errors: readonly unknown[];
}

/** Workers that take turns at locks. */
export interface Workers {
  /** Ends the workers. */
  stop(): Promise<Sightings>;
  /** Calls `action`, during which a free lock cannot be acquired, and does not count that time as idle. */
  withoutClock(action: () => Promise<void>): Promise<void>;
}

/** Workers on every client take turns at each of `names` until they are stopped. */
export function startWorkers(holdfasts: readonly Holdfast[], names: readonly string[]): Workers {
  const tokens: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]));
  const holders = new Map<string, number>();
  const freeSince = new Map<string, number>();
  const errors: unknown[] = [];
  let overlaps = 0;
  let longestIdleMs = 0;
  let sections = 0;
  let isOver = false;
  let stalledMs = 0;
  let stoppedMs = 0;
  let stoppedAtMs: number | undefined;
  // A busy machine stalls all workers. The test measures the lock, so stalls are subtracted.
  let lastMs = performance.now();
  const ticker = setInterval(() => {
    const nowMs = performance.now();
    if (stoppedAtMs === undefined) stalledMs += Math.max(0, nowMs - lastMs - 20);
    lastMs = nowMs;
  }, 10);

  const clockMs = (): number => (stoppedAtMs ?? performance.now()) - stoppedMs - stalledMs;

  const work = async (holdfast: Holdfast, name: string): Promise<void> => {
    while (!isOver) {
      try {
        const lease = await holdfast.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LONG_MS, fairness: "strict" });
        const free = freeSince.get(name);
        if (free !== undefined) longestIdleMs = Math.max(longestIdleMs, clockMs() - free);
        freeSince.delete(name);
        if ((holders.get(name) ?? 0) > 0) overlaps += 1;
        holders.set(name, (holders.get(name) ?? 0) + 1);
        tokens[name]?.push(lease.token);
        sections += 1;
        await sleep(2);
        holders.set(name, (holders.get(name) ?? 1) - 1);
        await lease.release();
        if ((holders.get(name) ?? 0) === 0) freeSince.set(name, clockMs());
      } catch (error) {
        // One error is enough to fail the test, and the next attempt might fail immediately.
        errors.push(error);
        return;
      }
    }
  };
  const working = Promise.all(holdfasts.flatMap((holdfast) => names.map((name) => work(holdfast, name))));
  return {
    async stop() {
      isOver = true;
      await working;
      clearInterval(ticker);
      return { overlaps, tokens, longestIdleMs, sections, errors };
    },
    async withoutClock(action) {
      stoppedAtMs = performance.now();
      await action();
      stoppedMs += performance.now() - stoppedAtMs;
      stoppedAtMs = undefined;
    },
  };
}
