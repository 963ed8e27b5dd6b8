/** A server, services of Java on it, and services of ours, whose requests a test can see, delay, or rob of their answers. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { StoreError } from "../../src/core/errors.js";
import type { Script, Store } from "../../src/core/store.js";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "../../src/index.js";
import { type Redisson, type RedissonOptions, redisson } from "../../src/interop/redisson/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { JavaModel } from "./java-model.js";
import type { Settings } from "./side.js";

/** One service of ours. */
export interface Service {
  readonly locks: Redisson;
  readonly holdfast: Holdfast;
  /** The connection that sends its scripts. */
  readonly client: Redis;
  /** Names of the scripts that were sent, of those that are Redisson's. */
  readonly sent: string[];
  /** What became of those that straggled. */
  readonly arrived: Promise<unknown>[];
  /** Replaced by a test: called before a script is sent, and after it has run. */
  before: (script: Script) => Promise<void> | void;
  /** An answer for which this says true is lost. */
  loses: (script: Script) => boolean;
  /** A script for which this gives a promise is run when that resolves, and whoever sent it has heard nothing by then. */
  straggles: (script: Script) => Promise<void> | undefined;
  /** Called before it listens on a channel. */
  beforeListening: (channel: string) => Promise<void>;
}

/** See the file header. */
export interface Scene {
  readonly redis: Redis;
  readonly port: number;
  name(): string;
  java(settings?: Partial<Settings>): JavaModel;
  node(options?: Partial<HoldfastOptions>, locks?: RedissonOptions): Service;
  /** Resolves when so many listen on the channel. */
  listening(channel: string, count?: number): Promise<void>;
}

/** One server for a test file. */
export function useScene(): Scene {
  let server: RedisServer;
  let redis: Redis;
  const closers: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis({ port: server.port });
  });
  afterEach(async () => {
    await Promise.all(closers.splice(0).map((close) => close()));
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });

  return {
    get redis() {
      return redis;
    },
    get port() {
      return server.port;
    },
    name: () => randomUUID(),
    java(settings = {}) {
      const java = new JavaModel({ port: server.port, watchdogMs: 30_000, ...settings });
      closers.push(() => java.close());
      return java;
    },
    node(options = {}, lockOptions = {}) {
      const client = new Redis({ port: server.port });
      client.on("error", () => {});
      const inner = storeFor(client, {});
      const service: Service = {
        client,
        sent: [],
        arrived: [],
        before: () => {},
        loses: () => false,
        straggles: () => undefined,
        beforeListening: async () => {},
        holdfast: undefined as unknown as Holdfast, // made below, on the store that looks here
        locks: undefined as unknown as Redisson,
      };
      const store: Store = {
        ...inner,
        async run(script, keys, args, timeoutMs) {
          if (script.name.startsWith("interop/redisson/")) {
            service.sent.push(script.name.slice("interop/redisson/".length));
            await service.before(script);
          }
          const late = service.straggles(script);
          if (late !== undefined) {
            service.arrived.push(late.then(() => inner.run(script, keys, args, timeoutMs)));
            throw unheard(script, "nothing was heard of it");
          }
          const reply = await inner.run(script, keys, args, timeoutMs);
          if (!service.loses(script)) return reply;
          throw unheard(script, "the reply was lost");
        },
        async inbox(channel, onMessage, timeoutMs) {
          await service.beforeListening(channel);
          return inner.inbox(channel, onMessage, timeoutMs);
        },
      };
      const holdfast = createHoldfast({ store, commandTimeoutMs: 1_000, ...options });
      closers.push(async () => {
        await holdfast.close();
        client.disconnect();
      });
      return Object.assign(service, { holdfast, locks: redisson(holdfast, lockOptions) });
    },
    async listening(channel, count = 1) {
      await vi.waitFor(
        async () => {
          const [, heard] = (await redis.pubsub("NUMSUB", channel)) as [string, number];
          if (Number(heard) < count) throw new Error(`${heard} listen on ${channel}`);
        },
        { timeout: 10_000 },
      );
    },
  };
}

function unheard({ name }: Script, why: string): StoreError {
  return new StoreError(name, { mayHaveRun: true, transient: true, cause: new Error(why) });
}

/** The first script of that name straggles until `arrive` is called. */
export function straggler(service: Service, name: string): { arrive(): Promise<unknown> } {
  const isFirst = once(name);
  let go = (): void => {};
  service.straggles = (script) => (isFirst(script) ? new Promise<void>((resolve) => (go = resolve)) : undefined);
  return {
    async arrive() {
      go();
      return service.arrived[0];
    },
  };
}

/** True once, for the script of that name. */
export function once(name: string): (script: Script) => boolean {
  let isDone = false;
  return (script) => {
    if (isDone || script.name !== `interop/redisson/${name}`) return false;
    isDone = true;
    return true;
  };
}
