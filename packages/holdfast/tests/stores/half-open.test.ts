/**
 * What client libraries do about a dead connection that was never closed, as documented in
 * docs/half-open-connections.md.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { StoreError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { createHoldfast } from "../../src/holdfast.js";
import { storeFor } from "../../src/stores/detect.js";
import { COUNT, RAISE } from "./rows.js";

const require = createRequire(import.meta.url);
const TIMEOUT_MS = 300;
/** Longer than any machine takes to reconnect. A client that never reconnects is not awaited that long. */
const PATIENCE = { timeout: 60_000, interval: 20 };

/** Forwards bytes until `swallow` makes all current connections dead. Later connections work. */
interface BlackHole {
  readonly port: number;
  swallow(): void;
  close(): void;
}

async function blackHoleBefore(port: number): Promise<BlackHole> {
  const links = new Set<readonly [Socket, Socket]>();
  const listener = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) socket.on("error", () => {});
    client.pipe(server);
    server.pipe(client);
    links.add([client, server]);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    swallow() {
      for (const [client, server] of links) {
        client.unpipe(server);
        server.unpipe(client);
        // Read and discarded, so the sender never notices.
        client.on("data", () => {});
        server.on("data", () => {});
        client.resume();
      }
    },
    close() {
      listener.close();
      for (const sockets of links) for (const socket of sockets) socket.destroy();
    },
  };
}

/** The members that these tests use of any client. */
interface AnyClient {
  readonly isOpen?: boolean;
  readonly isReady?: boolean;
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(): unknown;
  destroy?(): unknown;
}

let server: RedisServer;
let hole: BlackHole;
let ends: (() => unknown)[] = [];
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());
beforeEach(async () => {
  hole = await blackHoleBefore(server.port);
});
afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
  hole.close();
});

function ioredis(packageName: string, options: object = {}): AnyClient {
  const { Redis } = require(packageName) as { Redis: new (options: object) => AnyClient };
  const client = new Redis({ host: "127.0.0.1", port: hole.port, retryStrategy: () => 20, ...options });
  client.on("error", () => {});
  ends.push(() => client.disconnect());
  return client;
}

async function nodeRedis(packageName: string, socket: object = {}): Promise<AnyClient> {
  const { createClient } = require(packageName) as { createClient(options: object): AnyClient };
  const client = createClient({ socket: { host: "127.0.0.1", port: hole.port, ...socket } });
  client.on("error", () => {});
  await client.connect();
  ends.push(async () => {
    if (client.isOpen !== true) return;
    if (client.destroy) client.destroy();
    else await client.disconnect();
  });
  return client;
}

/** Runs a script and resolves to "answered" or to its error. */
function run(store: Store, timeoutMs = TIMEOUT_MS): Promise<unknown> {
  return store.run(COUNT, ["{half-open}"], [], timeoutMs).then(
    () => "answered",
    (error: unknown) => error,
  );
}

describe("a dead connection", () => {
  test.each(["ioredis5", "ioredis", "iovalkey"])("is replaced by %s with socketTimeout", async (name) => {
    const store = storeFor(ioredis(name, { socketTimeout: TIMEOUT_MS }));
    expect(await run(store, 60_000)).toBe("answered");
    hole.swallow();
    expect(await run(store)).toBeInstanceOf(StoreError);
    await vi.waitFor(async () => expect(await run(store)).toBe("answered"), PATIENCE);
    await store.close();
  });

  test.each(["redis5", "redis"])(
    "is replaced by %s with a socket timeout and a reconnectStrategy, once nothing is sent",
    async (name) => {
      const client = await nodeRedis(name, { socketTimeout: TIMEOUT_MS, reconnectStrategy: () => 20 });
      const store = storeFor(client);
      expect(await run(store, 60_000)).toBe("answered");
      hole.swallow();
      await vi.waitFor(async () => expect(await run(store)).toBe("answered"), {
        timeout: 60_000,
        interval: 3 * TIMEOUT_MS,
      });
      await store.close();
    },
  );

  test.each(["redis5", "redis"])("closes %s for good with a socket timeout and no reconnectStrategy", async (name) => {
    const client = await nodeRedis(name, { socketTimeout: TIMEOUT_MS });
    const store = storeFor(client);
    expect(await run(store, 60_000)).toBe("answered");
    hole.swallow();
    await run(store);
    await vi.waitFor(() => expect(client.isOpen).toBe(false), PATIENCE);
    expect(await run(store)).toMatchObject({ transient: false });
    expect(store.clientTimeouts?.()?.cure).toMatch(/closes the client for good/);
    await store.close();
  });

  test.each(["redis4", "redis5", "redis"])("of %s is replaced by the watchdog from the manual", async (name) => {
    const manual = readFileSync(new URL("../../../../docs/half-open-connections.md", import.meta.url), "utf8");
    const [, code = ""] = /<!-- executed: [^>]*-->\n```js\n([\s\S]*?)```/.exec(manual) ?? [];
    const module = await import(
      /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(`${code}; export { watch };`)}`
    );
    const watch = module.watch as (client: AnyClient, options: object) => Promise<void>;
    const client = await nodeRedis(name);
    const store = storeFor(client);
    const watching = watch(client, { everyMs: 20, patienceMs: TIMEOUT_MS });
    expect(await run(store, 60_000)).toBe("answered");
    hole.swallow();
    await vi.waitFor(async () => expect(await run(store)).toBe("answered"), PATIENCE);
    await store.close();
    if (client.destroy) client.destroy();
    else await client.disconnect();
    await watching;
  });
});

describe("the error of a command without a reply", () => {
  const advice =
    /The last (\d+) commands got no reply\. If the server is up, the connection is dead: (.*) \(docs\/half-open-connections.md\)\.$/;

  test("contains advice once three in a row have had no reply", async () => {
    const store = storeFor(ioredis("ioredis"));
    expect(await run(store, 60_000)).toBe("answered");
    hole.swallow();
    const errors = [await run(store, 50), await run(store, 50), await run(store, 50), await run(store, 50)].map(String);
    expect(errors.map((error) => advice.exec(error)?.[1])).toEqual([undefined, undefined, "3", "4"]);
    expect(advice.exec(errors[2] ?? "")?.[2]).toBe("set the client option socketTimeout to about 5000");
    await store.close();
  });

  test("counts commands that the client itself times out", async () => {
    const store = storeFor(ioredis("ioredis", { commandTimeout: 50 }));
    await vi.waitFor(async () => expect(await run(store, 60_000)).toBe("answered"), PATIENCE);
    hole.swallow();
    const errors = [await run(store, 10_000), await run(store, 10_000), await run(store, 10_000)].map(String);
    expect(errors[2]).toMatch(/\(Command timed out\).*The last 3 commands got no reply/);
    await store.close();
  });

  test.each([
    ["a reply", COUNT],
    ["an error for a reply", RAISE],
  ])("restarts its count after %s", async (_what, script) => {
    const store = storeFor(ioredis("ioredis"));
    expect(await run(store, 60_000)).toBe("answered");
    const errors: string[] = [];
    for (let i = 0; i < 2; i += 1) {
      await server.command("CLIENT", "PAUSE", 400, "ALL");
      errors.push(String(await run(store, 50)), String(await run(store, 50)));
      await store.run(script, [`{half-open}:${script.name}`], [], 60_000).catch(() => {});
    }
    for (const error of errors) {
      expect(error).toContain("no reply within 50 ms");
      expect(error).not.toMatch(advice);
    }
    await store.close();
  });

  test("contains no advice that the user already follows", async () => {
    const store = storeFor(ioredis("ioredis", { socketTimeout: 60_000 }));
    expect(await run(store, 60_000)).toBe("answered");
    hole.swallow();
    for (let i = 0; i < 4; i += 1) expect(String(await run(store, 50))).not.toMatch(advice);
    await store.close();
  });

  test("contains no advice while there is no connection", async () => {
    // Otherwise the client sometimes rejects the command before its deadline, with another error.
    const store = storeFor(ioredis("ioredis", { maxRetriesPerRequest: null }));
    expect(await run(store, 60_000)).toBe("answered");
    hole.close();
    await vi.waitFor(async () => expect(String(await run(store, 50))).toContain("there is no connection to"), PATIENCE);
    for (let i = 0; i < 4; i += 1) {
      const error = String(await run(store, 50));
      expect(error).toContain("there is no connection to");
      expect(error).not.toMatch(advice);
    }
    await store.close();
  });

  test("starts with the lock and what you may assume", async () => {
    const holdfast = createHoldfast({ redis: ioredis("ioredis") as never, commandTimeoutMs: 100 });
    await (await holdfast.mutex("order:42").acquire()).release();
    hole.swallow();
    const messages: string[] = [];
    await vi.waitFor(async () => {
      messages.push(
        String(
          await holdfast
            .mutex("order:42")
            .tryAcquire()
            .catch((error: unknown) => error),
        ),
      );
      expect(messages.at(-1)).toMatch(advice);
    }, PATIENCE);
    expect(messages.at(-1)).toMatch(
      /^StoreError: The server did not confirm a request for "order:42" \(no reply within 100 ms\); it may still have been carried out\. The last/,
    );
    await holdfast.close();
  });
});

describe("the timeouts that a client reports", () => {
  const timeouts = (client: object): object | undefined => storeFor(client).clientTimeouts?.();

  test.each([
    ["ioredis5", {}, undefined, undefined, /socketTimeout/],
    ["ioredis", {}, undefined, 30_000, /socketTimeout/],
    ["iovalkey", { keepAlive: 5_000 }, undefined, 5_000, /socketTimeout/],
    ["ioredis", { socketTimeout: 5_000 }, 5_000, 30_000, undefined],
  ])("are read from %s with %o", (name, options, socketTimeoutMs, keepAliveMs, cure) => {
    const told = timeouts(ioredis(name, { ...options, lazyConnect: true }));
    expect(told).toMatchObject({ library: "ioredis", socketTimeoutMs, keepAliveMs });
    expect(told).toMatchObject({ cure: cure === undefined ? undefined : expect.stringMatching(cure) });
  });

  test.each([
    [
      "redis4",
      { socketTimeout: 5_000, reconnectStrategy: () => 20 },
      undefined,
      /^if a PING gets no reply, close the node-redis client [^,]*$/,
    ],
    ["redis5", {}, undefined, /^if a PING gets no reply, close the node-redis client .*, or set socket\.socketTimeout/],
    ["redis", {}, undefined, /^if a PING gets no reply, close the node-redis client .*, or set socket\.socketTimeout/],
    ["redis", { socketTimeout: 5_000 }, 5_000, /^set socket\.reconnectStrategy/],
    ["redis5", { socketTimeout: 5_000, reconnectStrategy: () => 20 }, 5_000, undefined],
    ["redis", { socketTimeout: 5_000, reconnectStrategy: () => 20 }, 5_000, undefined],
  ])("are read from %s with socket options %o", (name, socket, socketTimeoutMs, cure) => {
    const { createClient } = require(name) as { createClient(options: object): AnyClient };
    const told = timeouts(createClient({ socket: { port: hole.port, ...socket } }));
    expect(told).toMatchObject({ library: "node-redis", socketTimeoutMs });
    expect(told).toMatchObject({ cure: cure === undefined ? undefined : expect.stringMatching(cure) });
  });

  test("are those of the nodes for an ioredis cluster", () => {
    const { Cluster } = require("ioredis") as { Cluster: new (nodes: object[], options: object) => AnyClient };
    const of = (redisOptions: object): object | undefined =>
      timeouts(new Cluster([{ port: hole.port }], { lazyConnect: true, redisOptions }));
    expect(of({ socketTimeout: 5_000 })).toMatchObject({ socketTimeoutMs: 5_000, cure: undefined });
    expect(of({})).toMatchObject({ cure: expect.stringContaining("socketTimeout") });
  });

  test("need no advice for GLIDE", () => {
    const glide = { customCommand: () => {}, invokeScript: () => {} };
    expect(timeouts(glide)).toMatchObject({ library: "glide", cure: undefined });
  });

  test("are in the client record", async () => {
    const holdfast = createHoldfast({ redis: ioredis("ioredis") as never });
    await (await holdfast.mutex("recorded").acquire()).release();
    await vi.waitFor(async () => {
      const [key = ""] = (await server.command("KEYS", "hf:client:*")) as string[];
      const text = String(await server.command("HGET", key, "timeouts"));
      expect(JSON.parse(text)).toMatchObject({ library: "ioredis", keepAliveMs: 30_000, cure: expect.any(String) });
    }, PATIENCE);
    await holdfast.close();
  });
});
