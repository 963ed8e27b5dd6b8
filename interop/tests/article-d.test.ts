/** Defects of the C++ lock of article D, each shown with the real program. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../tests/support/tcp-proxy.js";
import { type Peer, startArticleD } from "./peer.js";

const LEASE_S = 3;
const AT_MS = 1_700_000_000_500;
const AT_S = 1_700_000_000;

let redis: RedisServer;
let proxy: TcpProxy;
let count = 0;
const peers: Peer[] = [];

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startProxy(redis.port);
});
afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.kill()));
});
afterAll(async () => {
  await proxy.close();
  await redis.stop();
});

function article(settings: { port?: number; clockAheadMs?: number; clockAtMs?: number } = {}): Peer {
  const peer = startArticleD({ port: redis.port, ...settings });
  peers.push(peer);
  return peer;
}

function lock(): string {
  count += 1;
  return `lock.foo${count}`;
}

const nowS = (): number => Math.floor(Date.now() / 1_000);

test("a holder excludes another client, which gets the lock after the release", async () => {
  const name = lock();
  const [one, other] = [article({ clockAtMs: AT_MS }), article({ clockAtMs: AT_MS })];
  expect(await one.call("tryLock", { name })).toBe(true);
  expect(await other.call("tryLock", { name })).toBe(false);
  await one.call("unlock", { name });
  expect(await other.call("tryLock", { name })).toBe(true);
});

test("D1: the lock of a crashed holder has no expiry", async () => {
  const name = lock();
  const one = article();
  await one.call("tryLock", { name });
  await one.kill();
  expect(await redis.command("PTTL", name)).toBe(-1);
});

test("D2: a release just before a takeover leaves a lock that nobody holds", async () => {
  const name = lock();
  await redis.command("SET", name, AT_S - 1);
  const takeover = proxy.hold(/^GETSET/);
  const waiting = article({ port: proxy.port, clockAtMs: AT_MS }).call("tryLock", { name });
  await takeover.reached;
  await redis.command("DEL", name);
  takeover.release();
  expect(await waiting).toBe(false);
  expect(await redis.command("GET", name)).toBe(`${AT_S + LEASE_S}`);
});

test("D3: of two clients that see an expired lock one wins, and the other one overwrites its deadline", async () => {
  const name = lock();
  await redis.command("SET", name, AT_S - 1);
  const takeover = proxy.hold(/^GETSET/);
  const late = article({ port: proxy.port, clockAtMs: AT_MS + 2_000 }).call("tryLock", { name });
  await takeover.reached;
  expect(await article({ clockAtMs: AT_MS }).call("tryLock", { name })).toBe(true);
  takeover.release();
  expect(await late).toBe(false);
  expect(await redis.command("GET", name)).toBe(`${AT_S + 2 + LEASE_S}`);
});

test("D4, D9: a holder that overruns its lease works beside the next holder, and deletes its lock", async () => {
  const name = lock();
  const [late, next, third] = [article(), article(), article()];
  await late.call("tryLock", { name });
  await redis.command("SET", name, nowS() - 5);
  expect(await next.call("tryLock", { name })).toBe(true);
  await late.call("unlock", { name });
  expect(await third.call("tryLock", { name })).toBe(true);
});

test("D5: a lock that becomes free between two commands counts as a failure", async () => {
  const name = lock();
  await redis.command("SET", name, nowS() + 1_000);
  const reading = proxy.hold(/^GET /);
  const peer = article({ port: proxy.port });
  const waiting = peer.call("tryLock", { name });
  await reading.reached;
  await redis.command("DEL", name);
  reading.release();
  expect(await waiting).toBe(false);
  expect(peer.complaints).toContain(`get ${name} failed, status 1`);
  expect(await redis.command("EXISTS", name)).toBe(0);
});

test.each([
  [3, false],
  [4, true],
])("D6: a clock that is %d s ahead of a lock just taken steals it: %s", async (aheadS, isIn) => {
  const name = lock();
  await article({ clockAtMs: AT_MS }).call("tryLock", { name });
  expect(await article({ clockAtMs: AT_MS + aheadS * 1_000 }).call("tryLock", { name })).toBe(isIn);
});

test("D7: two clients write the same value in one second, and the real lease is up to a second shorter", async () => {
  const [one, other] = [lock(), lock()];
  await article({ clockAtMs: AT_S * 1_000 }).call("tryLock", { name: one });
  await article({ clockAtMs: AT_S * 1_000 + 999 }).call("tryLock", { name: other });
  expect(await redis.command("GET", one)).toBe(`${AT_S + LEASE_S}`);
  expect(await redis.command("GET", other)).toBe(`${AT_S + LEASE_S}`);
});

test("D8: in the second of the deadline it waits, according to this reading of the article", async () => {
  const name = lock();
  await redis.command("SET", name, AT_S);
  expect(await article({ clockAtMs: AT_MS }).call("tryLock", { name })).toBe(false);
  expect(await redis.command("GET", name)).toBe(`${AT_S}`);
  expect(await article({ clockAtMs: AT_MS + 1_000 }).call("tryLock", { name })).toBe(true);
});
