/**
 * Defects of the PHP lock of article A, each shown with the real program, so that the documentation's statements are
 * verified.
 */
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { phpSetGet, timestampLock } from "@holdfast/interop/timestamp";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import * as scripts from "../../packages/interop/src/generated/timestamp.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { RespParser } from "../../tests/support/resp.js";
import { startProxy } from "../../tests/support/tcp-proxy.js";
import { type Peer, startArticleA } from "./peer.js";

const LEASE_S = 30;
const AT_MS = 1_700_000_000_500;
const AT_S = 1_700_000_000;

let redis: RedisServer;
let count = 0;
const peers: Peer[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.kill()));
});
afterAll(() => redis.stop());

function article(settings: { port?: number; clockAheadMs?: number; clockAtMs?: number } = {}): Peer {
  const peer = startArticleA({ port: redis.port, ...settings });
  peers.push(peer);
  return peer;
}

function lock(): { name: string; key: string } {
  count += 1;
  return { name: `a${count}`, key: `your_lock_prefix_a${count}` };
}

const nowS = (): number => Math.floor(Date.now() / 1_000);

test("a holder excludes another client, which gets the lock after the release", async () => {
  const { name } = lock();
  const [one, other] = [article(), article()];
  expect(await one.call("tryLock", { name })).toBe(true);
  expect(await other.call("tryLock", { name })).toBe(false);
  const waiting = other.call("lock", { name });
  await one.call("unlock", { name });
  expect(await waiting).toBe(true);
});

test("A1: the lock of a crashed holder has no expiry", async () => {
  const { name, key } = lock();
  const one = article();
  await one.call("tryLock", { name });
  await one.kill();
  expect(await redis.command("PTTL", key)).toBe(-1);
});

test("A2: a waiter that asks in the second of expiry restarts the lease, and does not get it", async () => {
  const { name, key } = lock();
  await redis.command("SET", key, AT_S);
  expect(await article({ clockAtMs: AT_MS }).call("tryLock", { name })).toBe(false);
  expect(await redis.command("GET", key)).toBe(`${AT_S + LEASE_S}`);
});

test("A3: of two clients that see an expired lock one wins, and the other one overwrites its deadline", async () => {
  const { name, key } = lock();
  const proxy = await startProxy(redis.port);
  await redis.command("SET", key, AT_S - 1);
  const winner = article({ clockAtMs: AT_MS });
  const loser = article({ clockAtMs: AT_MS + 2_000, port: proxy.port });
  const takeover = proxy.hold(/^SET .* GET$/);
  const late = loser.call("tryLock", { name });
  await takeover.reached;
  expect(await winner.call("tryLock", { name })).toBe(true);
  takeover.release();
  expect(await late).toBe(false);
  expect(await redis.command("GET", key)).toBe(`${AT_S + 2 + LEASE_S}`);
  await proxy.close();
});

test("A4, A7: a holder that overruns its lease works beside the next holder, and deletes its lock", async () => {
  const { name, key } = lock();
  const [late, next, third] = [article(), article(), article()];
  await late.call("tryLock", { name });
  await redis.command("SET", key, nowS() - 5);
  expect(await next.call("tryLock", { name })).toBe(true);
  await late.call("unlock", { name });
  expect(await redis.command("EXISTS", key)).toBe(0);
  expect(await third.call("tryLock", { name })).toBe(true);
});

test.each([
  [29, false, LEASE_S],
  [30, false, 2 * LEASE_S],
  [31, true, 2 * LEASE_S + 1],
])(
  "A5: a clock that is %d s ahead of a lock just taken: it gets in is %s, and the deadline is in %d s",
  async (aheadS, isIn, inS) => {
    const { name, key } = lock();
    await article({ clockAtMs: AT_MS }).call("tryLock", { name });
    expect(await article({ clockAtMs: AT_MS + aheadS * 1_000 }).call("tryLock", { name })).toBe(isIn);
    expect(await redis.command("GET", key)).toBe(`${AT_S + inS}`);
  },
);

test("A6: two clients write the same value in one second, which does not identify the writer", async () => {
  const [one, other] = [lock(), lock()];
  await article({ clockAtMs: AT_S * 1_000 }).call("tryLock", { name: one.name });
  await article({ clockAtMs: AT_S * 1_000 + 999 }).call("tryLock", { name: other.name });
  expect(await redis.command("GET", one.key)).toBe(await redis.command("GET", other.key));
});

test("A8: a value that is not a number counts as expired", async () => {
  const { name, key } = lock();
  await redis.command("SET", key, "held by somebody");
  expect(await article().call("tryLock", { name })).toBe(true);
  expect(await redis.command("GET", key)).toMatch(/^\d+$/);
});

test("A9: a waiter whose predecessor releases just before its takeover holds the lock", async () => {
  const { name, key } = lock();
  const proxy = await startProxy(redis.port);
  await redis.command("SET", key, nowS() - 5);
  const takeover = proxy.hold(/^SET .* GET$/);
  const waiting = article({ port: proxy.port }).call("tryLock", { name });
  await takeover.reached;
  await redis.command("DEL", key);
  takeover.release();
  expect(await waiting).toBe(true);
  await proxy.close();
});

test("A10: before Redis 6.2 its takeover is a syntax error, and it throws; Holdfast needs no such command", async () => {
  const old = await startOldServer(redis.port);
  const { name, key } = lock();
  await redis.command("SET", key, AT_S);
  await expect(article({ port: old.port }).call("tryLock", { name })).rejects.toThrow("syntax error");
  expect(await redis.command("GET", key), "nothing was written").toBe(`${AT_S}`);

  const client = new Redis({ port: old.port });
  const holdfast = createHoldfast({ redis: client });
  const ours = timestampLock(holdfast, name, phpSetGet);
  const lease = await ours.acquire();
  expect(ours.key).toBe(key);
  await lease.extend(LEASE_S * 1_000);
  expect(await lease.release()).toBe("released");
  await holdfast.close();
  client.disconnect();
  for (const { source } of Object.values(scripts)) {
    // The source must not use SET with GET in scripts either, because old servers refuse it there too.
    expect(source).not.toMatch(/'SET'[^\n]*'GET'/);
  }
  await old.close();
});

/** A proxy that refuses SET options newer than Redis 6.0 and passes everything else to a real server. */
async function startOldServer(target: number): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection({ host: "127.0.0.1", port: target });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        upstream.destroy();
      });
    }
    const parser = new RespParser();
    client.on("data", (bytes) => {
      for (const { value, bytes: request } of parser.push(bytes)) {
        const words = Array.isArray(value) ? value.map((word) => String(word).toUpperCase()) : [];
        // The client sends one request at a time, so no reply of the real server can be in between.
        if (words[0] === "SET" && words.slice(3).includes("GET")) client.write("-ERR syntax error\r\n");
        else upstream.write(request);
      }
    });
    upstream.on("data", (bytes) => client.write(bytes));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
