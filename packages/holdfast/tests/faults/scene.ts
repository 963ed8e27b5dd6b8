/** Setup for every fault test: its own server, clients of it, and a lock name that no other test uses. */
import { randomUUID } from "node:crypto";
import { GlideClient, Logger } from "@valkey/valkey-glide";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, beforeEach } from "vitest";
import type { Program } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import type { Script } from "../../src/core/store.js";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";
import { hashesOn } from "../failover/shared-scripts.js";
import { startWorker } from "./programs/programs.js";

// Without this, GLIDE logs every lost connection to standard output, and these tests lose connections on purpose.
Logger.setLoggerConfig("off");

/** One client library: connects a client to the server at `port`. */
export interface Library {
  readonly name: string;
  connect(port: number): Promise<{ options: HoldfastOptions; disconnect: () => unknown }>;
}

/** ioredis resends requests that were in flight when a connection broke. */
export const ioredis: Library = {
  name: "ioredis 6",
  async connect(port) {
    const redis = new Redis({ port, retryStrategy: (times) => Math.min(times * 20, 200) });
    redis.on("error", () => {});
    return { options: { redis }, disconnect: () => redis.disconnect() };
  },
};

/** node-redis rejects requests that were in flight when a connection broke. */
export const nodeRedis: Library = {
  name: "node-redis 6",
  async connect(port) {
    const reconnectStrategy = (retries: number): number => Math.min(20 + retries * 20, 200);
    const redis = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy } });
    redis.on("error", () => {});
    await redis.connect();
    return { options: { redis }, disconnect: () => redis.destroy() };
  },
};

/** GLIDE does not report lost connections. */
export const glide: Library = {
  name: "GLIDE",
  async connect(port) {
    const addresses = [{ host: "127.0.0.1", port }];
    const make = () => GlideClient.createClient({ addresses, requestTimeout: 2_000 });
    const redis = await make();
    return { options: { redis, subscriber: make }, disconnect: () => redis.close() };
  },
};

/** The setup of one test. */
export interface FaultScene {
  readonly server: RedisServer;
  readonly name: string;
  /** Keys of the mutex `name`. */
  /** The hash under which clients load a script on the server. */
  hashOf(script: Script): string;
  readonly keys: { readonly lock: string; readonly fence: string; readonly queue: string };
  /** Connects a client, directly or through the port of a proxy. Closed after the test. */
  client(library: Library, options?: Partial<HoldfastOptions>, port?: number): Promise<Holdfast>;
  proxy(): Promise<TcpProxy>;
  /** Starts a process that acquires on request. Killed after the test. */
  worker(): Program;
  /** Owner that holds the lock on the server, or null. */
  holder(): Promise<string | null>;
  /** Token of the current grant on the server: the first token of the block that its claim has reserved. */
  token(): Promise<number>;
  /** Resolves when `count` claims are in the queue. */
  queued(count: number): Promise<void>;
}

/** Sets up a scene for each test of the file. Each test gets a new server, so it may cause any fault. */
export function useFaultScene(): FaultScene {
  let closers: (() => unknown)[] = [];
  let proxies: TcpProxy[] = [];
  const scene = {} as { -readonly [Key in keyof FaultScene]: FaultScene[Key] };

  beforeEach(async () => {
    const server = await startRedis();
    const name = `fault:${randomUUID()}`;
    const lock = `hf:mutex:{${name}}`;
    scene.server = server;
    scene.hashOf = await hashesOn(server);
    scene.name = name;
    scene.keys = { lock, fence: `${lock}:fence`, queue: `${lock}:queue` };
    scene.client = async (library, options = {}, port = server.port) => {
      const { options: found, disconnect } = await library.connect(port);
      const holdfast = createHoldfast({ ...found, ...options });
      closers.push(async () => {
        await holdfast.close();
        await disconnect();
      });
      return holdfast;
    };
    scene.proxy = async () => {
      const proxy = await startProxy(server.port);
      proxies.push(proxy);
      return proxy;
    };
    scene.worker = () => {
      const program = startWorker(server.port);
      closers.push(() => program.kill());
      return program;
    };
    scene.holder = async () => {
      const owner = await server.command("GET", lock);
      return owner === null ? null : String(owner);
    };
    scene.token = async () => {
      const block = Number((await scene.holder())?.split("/")[3] ?? 1);
      return Number(await server.command("GET", scene.keys.fence)) - block + 1;
    };
    scene.queued = (count) =>
      until(async () => (await server.command("ZCARD", scene.keys.queue)) === count, `${count} in the queue`);
  });
  afterEach(async () => {
    // Close clients before their servers and proxies, so that their last requests still arrive.
    scene.server.resume();
    await Promise.allSettled(closers.map((close) => close()));
    await Promise.all(proxies.map((proxy) => proxy.close()));
    closers = [];
    proxies = [];
    await scene.server.stop();
  });
  return scene;
}

/** Resolves to the outcome of the call as a value, so that a test can check it later. */
export function outcomeOf<Value>(promise: Promise<Value>): Promise<{ value?: Value; error?: unknown; atMs: number }> {
  return promise.then(
    (value) => ({ value, atMs: performance.now() }),
    (error: unknown) => ({ error, atMs: performance.now() }),
  );
}
