import { createRequire } from "node:module";
import type { GlideClient } from "@valkey/valkey-glide";
import type { Cluster, Redis } from "ioredis";
import type { Redis as Redis5 } from "ioredis5";
import type { Redis as Iovalkey } from "iovalkey";
import type { createClient, createClientPool } from "redis";
import type { createClient as createClient4 } from "redis4";
import type { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { UnsupportedError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { type RedisClient, storeFor } from "../../src/stores/detect.js";
import { COUNT, ROWS, type Row } from "./rows.js";

const require = createRequire(import.meta.url);
const PATIENT_MS = 5_000;

function rowNamed(name: string): Row {
  const row = ROWS.find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`no row is named ${name}`);
  return row;
}

describe("a value that is not a client", () => {
  test.each([
    [undefined, "got undefined"],
    [null, "got null"],
    ["redis://localhost", "got a string"],
    [{}, "got a plain object"],
    [{ host: "localhost" }, "got a plain object"],
    [Object.create(null), "got an object without a class"],
    [new Map(), "got an object of class Map"],
    [{ run() {}, inbox() {}, onReconnect() {} }, "got a plain object"],
    [() => {}, "got a function"],
  ])("%o is refused with a TypeError that names the option, the value and the accepted clients", (value, came) => {
    expect(() => storeFor(value)).toThrow(TypeError);
    expect(() => storeFor(value)).toThrow(/option `redis`.*ioredis, iovalkey, node-redis or @valkey\/valkey-glide/);
    expect(() => storeFor(value)).toThrow(came);
  });
});

test("a store is used as it is", () => {
  const store: Store = {
    kind: "of my own",
    run: async () => 1,
    inbox: async () => ({ close: async () => {} }),
    onReconnect: () => () => {},
    close: async () => {},
  };
  expect(storeFor(store)).toBe(store);
});

test("a redis 3 client is refused with an error that names the required version", () => {
  interface Client3 {
    on(event: "error", listener: () => void): void;
    end(flush: boolean): void;
  }
  const { createClient: createClient3 } = require("redis3") as { createClient(options: object): Client3 };
  const client = createClient3({ port: 1 });
  client.on("error", () => {}); // nothing listens there
  expect(() => storeFor(client)).toThrow(
    "got a client from version 3 or earlier of the redis package: install version 4 or later.",
  );
  client.end(false);
});

test("clients of every library match the type of the `redis` option", () => {
  expectTypeOf<Redis>().toExtend<RedisClient>();
  expectTypeOf<Cluster>().toExtend<RedisClient>();
  expectTypeOf<Redis5>().toExtend<RedisClient>();
  expectTypeOf<Iovalkey>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof createClient4>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof createClient5>>().toExtend<RedisClient>();
  expectTypeOf<GlideClient>().toExtend<RedisClient>();
  expectTypeOf<Map<string, string>>().not.toExtend<RedisClient>();
});

describe("on a real server", () => {
  let one: RedisServer;
  let two: RedisServer;
  const cleanups: (() => unknown)[] = [];

  beforeAll(async () => {
    [one, two] = await Promise.all([startRedis(), startRedis()]);
  });
  afterAll(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await Promise.all([one.stop(), two.stop()]);
  });
  async function connect(row: Row, server: RedisServer): Promise<object> {
    const client = await row.connect(server.port);
    cleanups.push(() => row.disconnect(client));
    return client;
  }
  function keep(store: Store): Store {
    cleanups.push(() => store.close());
    return store;
  }

  test.each(["GLIDE 2.5", "node-redis 6 pool"])(
    "%s without `subscriber` runs scripts, and rejects an inbox with an error that names the option",
    async (name) => {
      const store = keep(storeFor(await connect(rowNamed(name), one)));
      expect(await store.run(COUNT, [`{no-inbox:${name}}`], [], PATIENT_MS)).toBe(1);
      for (let tries = 0; tries < 2; tries += 1) {
        const error = await store.inbox("channel", () => {}, PATIENT_MS).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(UnsupportedError);
        expect(String(error)).toContain("`subscriber`");
      }
    },
  );

  test.each(["ioredis 6", "iovalkey", "node-redis 6", "node-redis 4"])(
    "GLIDE can subscribe through a client of %s",
    async (name) => {
      const subscriber = (): Promise<object> => rowNamed(name).connect(one.port);
      const store = keep(storeFor(await connect(rowNamed("GLIDE 2.5"), one), { subscriber }));
      const heard: string[] = [];
      await store.inbox(`mixed:${name}`, (message) => heard.push(message), PATIENT_MS);
      expect(await one.command("PUBLISH", `mixed:${name}`, "x")).toBe(1);
      await vi.waitFor(() => expect(heard).toEqual(["x"]));
      await store.close();
      await vi.waitFor(async () => expect(await one.command("PUBLISH", `mixed:${name}`, "x")).toBe(0), 5_000);
    },
  );

  test("if `subscriber` fails or returns no client, the inbox fails and can be retried", async () => {
    const row = rowNamed("ioredis 6");
    const made: unknown[] = [{}, Promise.reject(new Error("not now")), row.connect(one.port)];
    const store = keep(storeFor(await connect(row, one), { subscriber: () => made.shift() }));
    await expect(store.inbox("c", () => {}, PATIENT_MS)).rejects.toThrow(/subscriber.*a plain object/);
    await expect(store.inbox("c", () => {}, PATIENT_MS)).rejects.toThrow("not now");
    const inbox = await store.inbox("c", () => {}, PATIENT_MS);
    await inbox.close();
  });

  test("a subscriber client created after the store was closed is closed immediately", async () => {
    const row = rowNamed("ioredis 6");
    let deliver = (_client: unknown): void => {};
    const subscriber = (): Promise<unknown> =>
      new Promise((resolve) => {
        deliver = resolve;
      });
    const store = storeFor(await connect(row, one), { subscriber });
    const opening = store.inbox("late", () => {}, PATIENT_MS).catch((reason: unknown) => reason);
    await store.close();
    const late = (await connect(row, one)) as Redis;
    deliver(late);
    expect(await opening).toMatchObject({ name: "StoreError", transient: false });
    await vi.waitFor(() => expect(late.status).toBe("end"), 5_000);
  });

  test("two servers in one process have separate subscriber connections and keys", async () => {
    const row = rowNamed("ioredis 6");
    const [a, b] = [keep(storeFor(await connect(row, one))), keep(storeFor(await connect(row, two)))];
    const heard: string[] = [];
    await a.inbox("same", (message) => heard.push(`one ${message}`), PATIENT_MS);
    await b.inbox("same", (message) => heard.push(`two ${message}`), PATIENT_MS);
    await a.run(COUNT, ["{two-servers}"], [], PATIENT_MS);
    expect(await b.run(COUNT, ["{two-servers}"], [], PATIENT_MS)).toBe(1);
    expect([await one.command("PUBLISH", "same", 1), await two.command("PUBLISH", "same", 2)]).toEqual([1, 1]);
    await vi.waitFor(() => expect(heard.sort()).toEqual(["one 1", "two 2"]));
  });

  test("scripts run in the database that the caller chose", async () => {
    const { Redis: Client } = require("ioredis") as { Redis: new (options: object) => Redis };
    const client = new Client({ port: one.port, db: 3 });
    cleanups.push(() => client.disconnect());
    const store = keep(storeFor(client));
    await store.run(COUNT, ["{database}"], [], PATIENT_MS);
    await store.inbox("database", () => {}, PATIENT_MS);
    expect(await client.get("{database}")).toBe("1");
    expect(await one.command("EXISTS", "{database}")).toBe(0);
  });

  test("a disconnected client without an offline queue rejects a script that certainly did not run", async () => {
    const { Redis: Client } = require("ioredis") as { Redis: new (options: object) => Redis };
    const client = new Client({ port: one.port, enableOfflineQueue: false });
    cleanups.push(() => client.disconnect());
    const store = keep(storeFor(client));
    const early = await store.run(COUNT, ["{early}"], [], PATIENT_MS).catch((reason: unknown) => reason);
    expect(early).toMatchObject({ name: "StoreError", mayHaveRun: false, transient: true });
    // The subscriber connection has a queue anyway.
    await store.inbox("early", () => {}, PATIENT_MS);
    await vi.waitFor(async () => expect(await store.run(COUNT, ["{early}"], [], PATIENT_MS)).toBe(1));
  });

  test("a node-redis client made by withTypeMapping still emits events after the store is closed", async () => {
    const client = (await connect(rowNamed("node-redis 6"), one)) as ReturnType<typeof createClient>;
    const view = client.withTypeMapping({});
    const store = storeFor(view);
    await store.run(COUNT, ["{view}"], [], PATIENT_MS);
    await store.close();
    let heard = 0;
    view.on("error", () => {
      heard += 1;
    });
    await one.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await vi.waitFor(() => expect(heard).toBeGreaterThan(0), 5_000);
  });
});
