/** Stores whose server or connections are gone for a while, or whose client is configured never to reconnect. */

import { createRequire } from "node:module";
import type { Redis } from "ioredis";
import type { createClient } from "redis";
import { afterEach, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy } from "../../../../tests/support/tcp-proxy.js";
import type { Store } from "../../src/core/store.js";
import { storeFor } from "../../src/stores/detect.js";
import { COUNT, ROWS } from "./rows.js";

const require = createRequire(import.meta.url);
const PATIENT_MS = 5_000;
const eventually = { timeout: 10_000, interval: 5 };
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(): Promise<RedisServer> {
  const server = await startRedis();
  cleanups.push(() => server.stop());
  return server;
}
function keep(store: Store): Store {
  cleanups.push(() => store.close());
  return store;
}
function ioredis(options: object): Redis {
  const { Redis: Client } = require("ioredis") as { Redis: new (options: object) => Redis };
  const client = new Client(options);
  client.on("error", () => {});
  cleanups.push(() => client.disconnect());
  return client;
}
async function nodeRedis(packageName: string, options: object): Promise<ReturnType<typeof createClient>> {
  const library = require(packageName) as { createClient: (options: object) => ReturnType<typeof createClient> };
  const client = library.createClient(options);
  client.on("error", () => {});
  await client.connect();
  return client;
}

test.each(ROWS.filter((row) => !row.name.includes("with")))(
  "$name: after a server restart, scripts run and inboxes receive messages again",
  async (row) => {
    const server = await start();
    const client = await row.connect(server.port);
    cleanups.push(() => row.disconnect(client));
    const store = keep(storeFor(client, { subscriber: row.subscriber(server.port) }));
    const heard: string[] = [];
    let isToldOfInbox = false;
    store.onReconnect((connection) => {
      if (connection === "inbox") isToldOfInbox = true;
    });
    await store.run(COUNT, ["{restart}"], [], PATIENT_MS);
    await store.inbox("restart", (message) => heard.push(message), PATIENT_MS);
    await server.restart();
    await vi.waitFor(async () => expect(await server.command("PUBLISH", "restart", "x")).toBe(1), eventually);
    await vi.waitFor(() => expect(heard).toContain("x"), eventually);
    if (row.kind !== "glide") await vi.waitFor(() => expect(isToldOfInbox).toBe(true), eventually);
    await vi.waitFor(() => store.run(COUNT, ["{restart}"], [], 1_000), eventually);
  },
);

test("an ioredis client configured never to reconnect still has an inbox that reconnects", async () => {
  const server = await start();
  const store = keep(storeFor(ioredis({ port: server.port, retryStrategy: () => null })));
  await store.inbox("c", () => {}, PATIENT_MS);
  let told = 0;
  store.onReconnect(() => {
    told += 1;
  });
  await server.command("CLIENT", "KILL", "TYPE", "pubsub");
  await vi.waitFor(() => expect(told).toBe(1), eventually);
  expect(await server.command("PUBLISH", "c", "x")).toBe(1);
});

test.each(["redis", "redis5", "redis4"])(
  "a client of %s configured never to reconnect still has an inbox that reconnects",
  async (packageName) => {
    const server = await start();
    const client = await nodeRedis(packageName, { socket: { port: server.port, reconnectStrategy: false } });
    cleanups.push(() => client.quit());
    const store = keep(storeFor(client));
    await store.inbox("c", () => {}, PATIENT_MS);
    let told = 0;
    store.onReconnect(() => {
      told += 1;
    });
    await server.command("CLIENT", "KILL", "TYPE", "pubsub");
    await vi.waitFor(() => expect(told).toBe(1), eventually);
    expect(await server.command("PUBLISH", "c", "x")).toBe(1);
  },
);

/** A `subscriber` option whose clients give up at the first error. */
function impatient(packageName: string, port: number): () => unknown {
  if (packageName === "ioredis") return () => ioredis({ port, retryStrategy: () => null });
  const { createClient: create } = require(packageName) as { createClient: (options: object) => unknown };
  return () => create({ socket: { port, reconnectStrategy: false } });
}

test.each(["ioredis", "redis", "redis5", "redis4"])(
  "a user-supplied %s subscriber that has given up reconnecting is replaced and subscribed to all channels",
  async (packageName) => {
    const server = await start();
    let made = 0;
    const make = impatient(packageName, server.port);
    const subscriber = (): unknown => {
      made += 1;
      return make();
    };
    const store = keep(storeFor(ioredis({ port: server.port }), { subscriber }));
    await store.inbox("a", () => {}, PATIENT_MS);
    await store.inbox("b", () => {}, PATIENT_MS);
    expect(made).toBe(1);
    await server.command("CLIENT", "KILL", "TYPE", "pubsub");
    const publish = async (): Promise<unknown[]> => [
      await server.command("PUBLISH", "a", "x"),
      await server.command("PUBLISH", "b", "x"),
    ];
    await vi.waitFor(async () => expect(await publish()).toEqual([1, 1]), eventually);
    expect(made).toBe(2);
  },
);

test.each(["ioredis", "redis", "redis5", "redis4"])(
  "a user-supplied %s subscriber that could not connect is replaced when the next inbox opens",
  async (packageName) => {
    const server = await start();
    const proxy = await startProxy(server.port);
    cleanups.push(() => proxy.close());
    const store = keep(storeFor(ioredis({ port: server.port }), { subscriber: impatient(packageName, proxy.port) }));
    proxy.refuse(true);
    await expect(store.inbox("a", () => {}, PATIENT_MS)).rejects.toMatchObject({ name: "StoreError", transient: true });
    proxy.refuse(false);
    await vi.waitFor(() => store.inbox("a", () => {}, 1_000), eventually);
    expect(await server.command("PUBLISH", "a", "x")).toBe(1);
  },
);

test.each(["ioredis", "redis", "redis5", "redis4"])(
  "with %s, the subscriber connection uses the caller's login and does not keep the process alive",
  async (packageName) => {
    const server = await start();
    await server.command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all");
    const client: { ping(): Promise<unknown>; quit(): Promise<unknown> } =
      packageName === "ioredis"
        ? ioredis({ port: server.port, username: "app", password: "secret" })
        : await nodeRedis(packageName, { url: `redis://app:secret@127.0.0.1:${server.port}` });
    await client.ping();
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length;
    const before = sockets();
    expect(before).toBeGreaterThan(0);
    const store = keep(storeFor(client));
    await store.inbox("c", () => {}, PATIENT_MS);
    expect(String(await server.command("CLIENT", "LIST", "TYPE", "pubsub"))).toContain("user=app");
    await vi.waitFor(() => expect(sockets()).toBe(before), eventually);
    await store.close();
    await client.quit();
  },
);
