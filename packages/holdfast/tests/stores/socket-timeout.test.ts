/** The user's `socketTimeout` on a subscriber connection: kept only if an idle connection survives it. */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Redis as Iovalkey } from "iovalkey";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import type { Store } from "../../src/core/store.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, sleep, until } from "../../src/testing/delays.js";

const TIMEOUT_MS = 300;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

interface Client {
  on(event: "error", listener: () => void): unknown;
  connect?(): Promise<unknown>;
  disconnect?(): unknown;
  destroy?(): unknown;
}

/** A store behind a proxy, with one inbox. */
async function listening(connect: (port: number) => Client): Promise<{ store: Store; proxy: TcpProxy }> {
  const proxy = await startProxy(server.port);
  const client = connect(proxy.port);
  client.on("error", () => {});
  if (client.destroy !== undefined) await client.connect?.();
  const store = storeFor(client);
  onTestFinished(async () => {
    await store.close();
    try {
      (client.destroy ?? client.disconnect)?.call(client);
    } catch {
      // The command client has ended because of its own timeout.
    }
    await proxy.close();
  });
  await store.inbox("hf:in:somebody", () => {}, LONG_MS);
  return { store, proxy };
}

const ioredises = [
  { name: "ioredis 6", connect: (port: number) => new Redis({ port, socketTimeout: TIMEOUT_MS }) },
  { name: "ioredis 5", connect: (port: number) => new Redis5({ port, socketTimeout: TIMEOUT_MS }) },
  { name: "iovalkey", connect: (port: number) => new Iovalkey({ port, socketTimeout: TIMEOUT_MS }) },
];

const nodeRedises = [
  { name: "node-redis 6", connect: (options: object): Client => createClient(options) },
  { name: "node-redis 5", connect: (options: object): Client => createClient5(options) },
];

function optionsFor(port: number, pingInterval?: number): object {
  return { socket: { host: "127.0.0.1", port, socketTimeout: TIMEOUT_MS }, ...(pingInterval && { pingInterval }) };
}

describe.each(ioredises)("$name", ({ connect }) => {
  test("an idle subscriber connection survives the socket timeout", async () => {
    const { proxy } = await listening(connect);
    await sleep(4 * TIMEOUT_MS);
    expect([proxy.counts.connections, proxy.counts.cuts]).toEqual([2, 0]);
  });

  test("a subscriber connection without replies is replaced", async () => {
    const { store, proxy } = await listening(connect);
    expect(proxy.blackHole("silent")).toBe(1);
    // Only this request triggers the timeout, because nothing has been written before.
    await store.inbox("hf:in:somebody-else", () => {}, LONG_MS);
    expect(proxy.counts.connections).toBe(3);
  });
});

describe.each(nodeRedises)("$name", ({ connect }) => {
  test("an idle subscriber connection survives the socket timeout", async () => {
    const { proxy } = await listening((port) => connect(optionsFor(port)));
    const before = proxy.counts.connections;
    const subscribers = async (): Promise<string> =>
      String(await server.command("CLIENT", "LIST", "TYPE", "pubsub")).replace(/ .*/, "");
    const first = await subscribers();
    await sleep(4 * TIMEOUT_MS);
    expect(before).toBe(2);
    expect(await subscribers()).toBe(first);
  });

  test("with frequent pings, a subscriber connection without replies is replaced", async () => {
    const { proxy } = await listening((port) => connect(optionsFor(port, TIMEOUT_MS / 5)));
    await sleep(4 * TIMEOUT_MS);
    expect(proxy.counts.connections, "while it answers").toBe(2);
    expect(proxy.blackHole("silent")).toBe(1);
    await until(() => proxy.counts.connections === 3, "another connection");
  });
});
