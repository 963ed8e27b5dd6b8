/** A server and helpers for the tests of leaders. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Election, type Holdfast, type Leader, type Leadership } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";

/** Long enough for a busy machine. A passing run never reaches it. */
export const eventually: { readonly timeout: number; readonly interval: number } = { timeout: 30_000, interval: 10 };

/** The setup that a test uses. */
export interface LeadScene {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly name: string;
  /** Creates another Holdfast with its own connection. It is closed after the test. */
  another(port?: number): Holdfast;
  proxy(): Promise<TcpProxy>;
}

/** Registers the hooks of a test file. */
export function useLeadScene(): LeadScene {
  let server: RedisServer;
  let redis: Redis;
  let name = "";
  let ends: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis({ port: server.port });
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });
  beforeEach(() => {
    name = randomUUID();
    ends = [];
  });
  afterEach(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return {
    get server() {
      return server;
    },
    get redis() {
      return redis;
    },
    get name() {
      return name;
    },
    another(port = server.port) {
      const client = new Redis({ port, retryStrategy: () => 20 });
      client.on("error", () => {});
      // Long, because the machine may be slow.
      const holdfast = createHoldfast({ redis: client, commandTimeoutMs: 5_000 });
      ends.push(async () => {
        await holdfast.close();
        client.disconnect();
      });
      return holdfast;
    },
    async proxy() {
      const proxy = await startProxy(server.port);
      ends.push(() => proxy.close());
      return proxy;
    },
  };
}

/** Work that ignores its signal and runs until `end` is called. */
export function held<Value>(): {
  readonly work: (leadership: Leadership) => Promise<Value>;
  readonly began: Promise<Leadership>;
  end(how: Promise<Value> | Value): void;
} {
  let begin: (leadership: Leadership) => void = () => {};
  let end: (how: Promise<Value> | Value) => void = () => {};
  const began = new Promise<Leadership>((resolve) => {
    begin = resolve;
  });
  const ended = new Promise<Value>((resolve) => {
    end = resolve;
  });
  ended.catch(() => {});
  return {
    work(leadership) {
      begin(leadership);
      return ended;
    },
    began,
    end,
  };
}

/** Well-behaved work that ends when its signal aborts. */
export function heeding(began: (leadership: Leadership) => void = () => {}): (leadership: Leadership) => Promise<void> {
  return async (leadership) => {
    began(leadership);
    if (leadership.signal.aborted) return;
    await new Promise<void>((resolve) => leadership.signal.addEventListener("abort", () => resolve()));
  };
}

/** Resolves with the reason of the signal once it is aborted. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(signal.reason));
    if (signal.aborted) resolve(signal.reason);
  });
}

/** Observes an election until `stop` is called. */
export function follow(election: Election): { readonly seen: (Leader | null)[]; stop(): Promise<void> } {
  const controller = new AbortController();
  const seen: (Leader | null)[] = [];
  const done = (async () => {
    for await (const leader of election.observe({ signal: controller.signal })) seen.push(leader);
  })().catch(() => {});
  return {
    seen,
    stop() {
      controller.abort();
      return done;
    },
  };
}
