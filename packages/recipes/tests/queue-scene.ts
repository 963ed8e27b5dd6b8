/** Setup for tests of recipes with a queue: a server, two clients, a proxy for faults, and work that can be held. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { deferred } from "../../holdfast/src/testing/delays.js";

/** Never reached in a passing run. */
export const eventually = { timeout: 60_000, interval: 10 };

/** The setup of one test file. `name` and the clients from `reach` belong to one test. */
export interface QueueScene {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly holdfast: Holdfast;
  readonly other: Holdfast;
  readonly name: string;
  /** Returns another client that connects via a proxy, which can inject faults. */
  reach(options?: Partial<HoldfastOptions>): Promise<{ holdfast: Holdfast; proxy: TcpProxy }>;
}

/** Registers the hooks of a test file. */
export function useQueueScene(): QueueScene {
  const scene = {} as { -readonly [Key in keyof QueueScene]: QueueScene[Key] };
  const clients: Redis[] = [];
  let closers: (() => unknown)[] = [];

  beforeAll(async () => {
    scene.server = await startRedis();
    for (let count = 0; count < 3; count += 1) clients.push(new Redis({ port: scene.server.port }));
    const [own, first, second] = clients as [Redis, Redis, Redis];
    scene.redis = own;
    scene.holdfast = createHoldfast({ redis: first, clientName: "first" });
    scene.other = createHoldfast({ redis: second, clientName: "second" });
  });
  afterAll(async () => {
    await Promise.all([scene.holdfast?.close(), scene.other?.close()]);
    for (const client of clients) client.disconnect();
    await scene.server?.stop();
  });
  beforeEach(() => {
    scene.name = randomUUID();
    scene.reach = async (options = {}) => {
      const proxy = await startProxy(scene.server.port);
      const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
      client.on("error", () => {});
      const holdfast = createHoldfast({ redis: client, ...options });
      closers.push(async () => {
        proxy.resume();
        await holdfast.close();
        client.disconnect();
        await proxy.close();
      });
      return { holdfast, proxy };
    };
  });
  afterEach(async () => {
    await Promise.allSettled(closers.map((close) => close()));
    closers = [];
  });
  return scene;
}

/** Work that runs until `end` is called. */
export interface HeldWork<Value> {
  readonly work: () => Promise<Value>;
  readonly began: Promise<void>;
  end(how: Promise<Value> | Value): void;
}

/** Returns work for one call. */
export function held<Value>(): HeldWork<Value> {
  const began = deferred<void>();
  const ended = deferred<Value>();
  ended.promise.catch(() => {});
  return {
    work: () => {
      began.resolve();
      return ended.promise;
    },
    began: began.promise,
    end: (how) => ended.resolve(how),
  };
}
