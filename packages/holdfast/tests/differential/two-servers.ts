/** Runs the same calls on an embedded server and a real one, with replies in the same form. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";

/** Times are rounded to multiples of this. No time is near half of it, and every program takes much less. */
export const QUANTUM_MS = 100_000;

/** One key and its value. `leftMs` is -1 without an expiry. */
export interface Dumped {
  readonly key: string;
  readonly type: string;
  readonly value: string | readonly string[];
  readonly leftMs: number;
}

/** A server that runs scripts and has some subscribed clients. */
export interface Side {
  eval(source: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** Messages published since the last call, as `<channel> <message>`, in order. */
  messages(): Promise<string[]>;
  dump(): Promise<Dumped[]>;
  clear(): Promise<void>;
  stop(): Promise<void>;
}

/** An embedded server whose clock advances 50 µs at each reading, so that no two readings are equal. */
export async function embeddedSide(channels: readonly string[]): Promise<Side> {
  let nowUs = Date.now() * 1_000;
  const keyspace = new Keyspace({
    clock: {
      nowUs() {
        nowUs += 50;
        return nowUs;
      },
    },
  });
  const store = embedded({ keyspace });
  const heard: string[] = [];
  for (const channel of channels) await store.inbox(channel, (message) => heard.push(`${channel} ${message}`), 1_000);
  return {
    eval: (source, keys, args) => keyspace.eval(source, keys, args),
    async messages() {
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      return heard.splice(0);
    },
    dump: async () => keyspace.dump(),
    clear: async () => keyspace.clear(),
    stop: () => store.close(),
  };
}

/** Starts a redis-server. */
export async function realSide(channels: readonly string[]): Promise<Side> {
  const server: RedisServer = await startRedis();
  const redis = new Redis({ port: server.port });
  const subscriber = new Redis({ port: server.port });
  const heard: string[] = [];
  subscriber.on("message", (channel: string, message: string) => heard.push(`${channel} ${message}`));
  await subscriber.subscribe(...channels);
  return {
    eval: (source, keys, args) => redis.eval(source, keys.length, ...keys, ...args),
    async messages() {
      await subscriber.ping();
      return heard.splice(0);
    },
    async dump() {
      const keys = (await redis.keysBuffer("*")).sort(Buffer.compare).map(String);
      return Promise.all(keys.map((key) => dumpKey(redis, key)));
    },
    clear: async () => void (await redis.flushdb()),
    async stop() {
      redis.disconnect();
      subscriber.disconnect();
      await server.stop();
    },
  };
}

async function dumpKey(redis: Redis, key: string): Promise<Dumped> {
  const type = await redis.type(key);
  const leftMs = await redis.pttl(key);
  if (type === "string") return { key, type, value: (await redis.get(key)) ?? "", leftMs };
  if (type === "hash") {
    const fields = Object.entries(await redis.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    return { key, type, value: fields.flat(), leftMs };
  }
  const source = "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')";
  return { key, type, value: (await redis.eval(source, 1, key)) as string[], leftMs };
}

/** Rounds times, and replaces tokens dated by the clock with their ranks. */
export function normalise(seen: unknown): unknown {
  const dated = [...new Set(JSON.stringify(seen).match(/\d{16}/g))].sort();
  const ranked = (text: string): string => text.replace(/\d{16}/g, (digits) => `#${dated.indexOf(digits)}`);
  return JSON.parse(
    JSON.stringify(seen, (_, value: unknown) => {
      if (typeof value === "string") return ranked(value);
      if (typeof value !== "number") return value;
      return isTime(value) ? { quanta: Math.round(value / QUANTUM_MS) } : ranked(String(value));
    }),
  ) as unknown;
}

function isTime(value: number): boolean {
  return value > 1_000 && value < 1e12;
}
