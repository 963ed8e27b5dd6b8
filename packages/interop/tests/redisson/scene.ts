/** A server with Java and Holdfast services. A test can observe and delay Holdfast requests, or drop their replies. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { StoreError } from "../../../holdfast/src/core/errors.js";
import type { Script, Store } from "../../../holdfast/src/core/store.js";
import { storeFor } from "../../../holdfast/src/stores/detect.js";
import { type Redisson, type RedissonOptions, redisson } from "../../src/redisson/index.js";
import { JavaModel } from "./java-model.js";
import type { Settings } from "./side.js";

/** One Holdfast service. */
export interface Service {
  readonly locks: Redisson;
  readonly holdfast: Holdfast;
  /** The connection that sends its scripts. */
  readonly client: Redis;
  /** Names of the Redisson scripts that were sent. */
  readonly sent: string[];
  /** Results of the scripts that ran late. */
  readonly arrived: Promise<unknown>[];
  /** Called before a script is sent. A test may replace it. */
  before: (script: Script) => Promise<void> | void;
  /** Drops the reply of a script for which it returns true. */
  loses: (script: Script) => boolean;
  /** Delays a script until the returned promise resolves. The sender gets an error immediately. */
  straggles: (script: Script) => Promise<void> | undefined;
  /** Called before the service subscribes to a channel. */
  beforeListening: (channel: string) => Promise<void>;
}

export interface Scene {
  readonly redis: Redis;
  readonly port: number;
  name(): string;
  java(settings?: Partial<Settings>): JavaModel;
  node(options?: Partial<HoldfastOptions>, locks?: RedissonOptions): Service;
  /** Resolves when the channel has `count` subscribers. */
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
        holdfast: undefined as unknown as Holdfast, // assigned below because the store refers to this object
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

/** Delays the first script with that name until `arrive` is called. */
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

/** Returns true once, for the first script with that name. */
export function once(name: string): (script: Script) => boolean {
  let isDone = false;
  return (script) => {
    if (isDone || script.name !== `interop/redisson/${name}`) return false;
    isDone = true;
    return true;
  };
}
