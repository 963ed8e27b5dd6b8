/** A common interface to an embedded keyspace and a real server, with replies in the same format. */
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { type DumpedKey, Keyspace } from "../src/index.js";

/** The reply to one command: a value, a status, or an error with its full text. */
export type Answer = { readonly reply: unknown } | { readonly status: unknown } | { readonly error: unknown };

export interface TestServer {
  /** Runs one command from a script. */
  command(words: readonly string[]): Promise<Answer>;
  /** Runs a whole script. An error becomes `{ error }`, without the part that names the script. */
  eval(source: string, keys?: readonly string[], args?: readonly (string | number)[]): Promise<Answer>;
  dump(): Promise<DumpedKey[]>;
  clear(): Promise<void>;
  stop(): Promise<void>;
}

export function embeddedServer(keyspace: Keyspace = new Keyspace()): TestServer {
  return {
    ...answering((source, keys, args) => keyspace.eval(source, keys, args)),
    dump: async () => keyspace.dump(),
    clear: async () => keyspace.clear(),
    stop: async () => {},
  };
}

export async function realServer(): Promise<TestServer> {
  const server: RedisServer = await startRedis();
  const redis = new Redis(server.port);
  return {
    ...answering((source, keys, args) => redis.eval(source, keys.length, ...keys, ...args)),
    dump: () => dumpOf(redis),
    clear: async () => void (await redis.flushall()),
    async stop() {
      redis.disconnect();
      await server.stop();
    },
  };
}

type Eval = (source: string, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

function answering(run: Eval): Pick<TestServer, "command" | "eval"> {
  return {
    async command(words) {
      const [tag, value = null] = (await run(dispatch(words.length), [], words)) as [string, unknown];
      if (tag === "error") return { error: value };
      return tag === "status" ? { status: value } : { reply: value };
    },
    async eval(source, keys = [], args = []) {
      try {
        return { reply: await run(source, keys, args) };
      } catch (error) {
        return { error: (error as Error).message.replace(/ script: .*/s, "") };
      }
    },
  };
}

/** Returns a script that calls one command of `count` words. */
function dispatch(count: number): string {
  const words = Array.from({ length: count }, (_, index) => `ARGV[${index + 1}]`).join(",");
  return `local answer = redis.pcall(${words})
    if type(answer) == 'table' and answer.err then return {'error', answer.err} end
    if type(answer) == 'table' and answer.ok then return {'status', answer.ok} end
    return {'reply', answer}`;
}

async function dumpOf(redis: Redis): Promise<DumpedKey[]> {
  const keys = (await redis.keysBuffer("*")).sort(Buffer.compare).map(String);
  return Promise.all(
    keys.map(async (key) => {
      const type = (await redis.type(key)) as DumpedKey["type"];
      return { key, type, value: await contentOf(redis, key, type), leftMs: await redis.pttl(key) };
    }),
  );
}

async function contentOf(redis: Redis, key: string, type: DumpedKey["type"]): Promise<string | string[]> {
  switch (type) {
    case "string":
      return (await redis.get(key)) ?? "";
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return byBytes((await redis.smembers(key)).map((member) => [member])).flat();
    case "hash":
      return byBytes(Object.entries(await redis.hgetall(key))).flat();
    case "zset":
      // Via EVAL, because RESP3 returns scores as a separate type.
      return (await redis.eval("return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", 1, key)) as string[];
    case "stream":
      return (await redis.xrange(key, "-", "+")).flatMap(([id, fields]) => [id, ...fields]);
  }
}

function byBytes<Row extends string[]>(rows: Row[]): Row[] {
  return rows.sort(([left = ""], [right = ""]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}
