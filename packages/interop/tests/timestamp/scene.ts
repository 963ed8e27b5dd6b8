/** Two Holdfast clients and any number of foreign clients on one real server. Each test has its own lock. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import {
  type PeerEvent,
  type TimestampDialect,
  type TimestampLock,
  type TimestampOptions,
  timestampLock,
} from "../../src/timestamp/index.js";
import type { MakePeer, PeerClock, TimestampPeer } from "./peers.js";

/** Environment of a row. */
export interface Scene {
  readonly server: RedisServer;
  /** A separate connection. Tests also use it to write states that would need time to develop. */
  readonly redis: Redis;
  readonly holdfast: Holdfast;
  readonly dialect: TimestampDialect;
  /** Name of this test's lock. */
  readonly name: string;
  readonly key: string;
  /** A client of the other system. */
  peer(clock?: PeerClock): TimestampPeer;
  /** The lock through the first or the second Holdfast. */
  lock(options?: TimestampOptions, which?: "first" | "second"): TimestampLock;
  /** Events of this lock on the `holdfast:peer` channel. */
  readonly told: readonly PeerEvent[];
  /** The server's clock, in ms since 1970. */
  nowMs(): Promise<number>;
}

/** One numbered row of interop/coverage.md: its text and its test. */
export interface Row {
  readonly id: string;
  readonly title: string;
  play(scene: Scene): Promise<void>;
}

/** Starts the server and the clients for a test file. */
export function useScene(dialect: TimestampDialect, makePeer: MakePeer): Scene {
  const clients: Redis[] = [];
  const holdfasts: Holdfast[] = [];
  const told: PeerEvent[] = [];
  const listen = (message: unknown): void => void told.push(message as PeerEvent);
  let server!: RedisServer;
  let count = 0;
  beforeAll(async () => {
    server = await startRedis();
    for (let i = 0; i < 3; i += 1) clients.push(new Redis({ port: server.port }));
    for (const redis of clients.slice(1)) holdfasts.push(createHoldfast({ redis }));
    subscribe("holdfast:peer", listen);
  });
  beforeEach(() => {
    count += 1;
    told.length = 0;
  });
  afterEach(() => clients[0]?.flushall());
  afterAll(async () => {
    unsubscribe("holdfast:peer", listen);
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
    for (const client of clients) client.disconnect();
    await server?.stop();
  });
  const scene: Scene = {
    get server() {
      return server;
    },
    get redis() {
      return clients[0] as Redis;
    },
    get holdfast() {
      return holdfasts[0] as Holdfast;
    },
    dialect,
    get name() {
      return `account:${count}`;
    },
    get key() {
      return dialect.prefix + scene.name + dialect.suffix;
    },
    peer: (clock) => makePeer(scene.redis, scene.key, clock),
    lock: (options = {}, which = "first") =>
      timestampLock(holdfasts[which === "first" ? 0 : 1] as Holdfast, scene.name, dialect, options),
    get told() {
      return told.filter(({ key }) => key === scene.key);
    },
    async nowMs() {
      const [seconds = 0, micros = 0] = (await scene.redis.time()).map(Number);
      return seconds * 1_000 + micros / 1_000;
    },
  };
  return scene;
}
