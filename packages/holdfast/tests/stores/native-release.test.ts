/** Releases without a script on a real server, whether or not it has the commands (docs/adr/149). */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";

/** More releases than a store sends as scripts before it tries the command. */
const MANY = 40;

let server: RedisServer;
let hasCommand: boolean;
beforeEach(async () => {
  server = await startRedis();
  const known = await server.command("COMMAND", "INFO", "delifeq");
  hasCommand = Array.isArray(known) && known.some((entry) => Array.isArray(entry) && entry.length > 0);
});
afterEach(() => server?.stop());

/** How often a client has sent DELIFEQ, and how often the server has executed it. */
class Asked {
  sent = 0;

  /** Counts the DELIFEQ commands that the client sends with this method. */
  constructor(client: object, method: "call" | "sendCommand") {
    const send: (...words: unknown[]) => unknown = Reflect.get(client, method).bind(client);
    const counting = (...words: unknown[]): unknown => {
      if (words.flat()[0] === "DELIFEQ") this.sent += 1;
      return send(...words);
    };
    Object.assign(client, { [method]: counting });
  }

  async executed(): Promise<number> {
    const stats = String(await server.command("INFO", "commandstats"));
    return Number(/^cmdstat_delifeq:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
  }
}

async function useMany(holdfast: Holdfast): Promise<void> {
  for (let i = 0; i < MANY; i += 1) {
    const lease = await holdfast.mutex(`lock ${i % 3}`).acquire();
    expect(await lease.release()).toBe("released");
    expect((await holdfast.mutex(`lock ${i % 3}`).inspect()).holders).toEqual([]);
  }
}

describe.each([
  { name: "ioredis", method: "call", connect: async () => new Redis({ port: server.port }) },
  {
    name: "ioredis with automatic pipelines",
    method: "call",
    connect: async () => new Redis({ port: server.port, enableAutoPipelining: true }),
  },
  {
    name: "node-redis",
    method: "sendCommand",
    connect: async () => {
      const client = createClient({ url: `redis://127.0.0.1:${server.port}` });
      return client.on("error", () => {}).connect();
    },
  },
] as const)("$name", ({ connect, method }) => {
  test("uses DELIFEQ if the server has it, and otherwise tries it once per connection", async () => {
    const redis = await connect();
    const asked = new Asked(redis, method);
    const holdfast = createHoldfast({ redis });
    await useMany(holdfast);
    if (hasCommand) {
      expect(await asked.executed()).toBe(asked.sent);
      expect(asked.sent).toBeGreaterThan(MANY / 3);
    } else expect(asked.sent).toBe(1);
    await holdfast.close();
    await redis.quit();
  });
});

test("with an ioredis key prefix, locks are released by script because ioredis does not add the prefix to DELIFEQ", async () => {
  const redis = new Redis({ port: server.port, keyPrefix: "app:" });
  const asked = new Asked(redis, "call");
  const holdfast = createHoldfast({ redis });
  await useMany(holdfast);
  expect(asked.sent).toBe(0);
  await holdfast.close();
  await redis.quit();
});

test("a user without permission for DELIFEQ releases by script, and is refused once per connection", async () => {
  const denied = hasCommand ? ["-delifeq"] : [];
  await server.command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", ...denied);
  const redis = new Redis({ port: server.port, username: "app", password: "secret" });
  const asked = new Asked(redis, "call");
  const holdfast = createHoldfast({ redis });
  await useMany(holdfast);
  expect(asked.sent).toBe(1);
  const reconnected = new Promise((resolve) => redis.once("ready", resolve));
  redis.disconnect(true);
  await reconnected;
  await useMany(holdfast);
  expect(asked.sent).toBe(2);
  expect(await asked.executed()).toBe(0);
  await holdfast.close();
  await redis.quit();
});

test("a process that releases few locks does not try DELIFEQ", async () => {
  const redis = new Redis({ port: server.port });
  const asked = new Asked(redis, "call");
  const holdfast = createHoldfast({ redis });
  for (let i = 0; i < 10; i += 1) await (await holdfast.mutex("lock").acquire()).release();
  expect(asked.sent).toBe(0);
  await holdfast.close();
  await redis.quit();
});
