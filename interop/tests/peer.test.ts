/** Tests of the harness itself: a peer replies, reports errors, can be killed, and ends with its input. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startArticleA, startArticleB, startArticleD, startRedisPy, startShell } from "./peer.js";

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const peers = [
  ["article A in PHP", () => startArticleA({ port: redis.port })],
  ["article B in PHP", () => startArticleB({ port: redis.port })],
  ["article D in C++", () => startArticleD({ port: redis.port })],
  ["redis-py", () => startRedisPy(redis.port)],
  ["the shell", () => startShell(redis.port)],
] as const;

test.each(peers)("%s refuses a verb that it does not have, and ends with its input", async (_, start) => {
  const peer = start();
  await expect(peer.call("juggle", { name: "x" })).rejects.toMatchObject({ name: "Error", kind: expect.any(String) });
  expect(await peer.stop()).toEqual({ code: 0, signal: null });
  await expect(peer.call("juggle")).rejects.toThrow("has ended");
});

test("a call to a peer that is killed meanwhile rejects", async () => {
  await redis.command("SET", "your_lock_prefix_taken", `${Math.floor(Date.now() / 1_000) + 1_000}`);
  const peer = startArticleA({ port: redis.port });
  expect(await peer.call("tryLock", { name: "taken" })).toBe(false);
  const waiting = expect(peer.call("lock", { name: "taken" })).rejects.toThrow("php ended (SIGKILL)");
  expect(await peer.kill()).toEqual({ code: null, signal: "SIGKILL" });
  await waiting;
});

test("a frozen peer answers when it resumes", async () => {
  const peer = startArticleD({ port: redis.port });
  expect(await peer.call("tryLock", { name: "frozen" })).toBe(true);
  peer.freeze();
  const answer = peer.call("unlock", { name: "frozen" });
  expect(await redis.command("EXISTS", "frozen")).toBe(1);
  peer.resume();
  expect(await answer).toBe(true);
  expect(await redis.command("EXISTS", "frozen")).toBe(0);
  await peer.stop();
});

test("a missing program is reported", async () => {
  const path = process.env.PATH;
  process.env.PATH = "";
  const peer = startShell(redis.port);
  process.env.PATH = path;
  await expect(peer.call("tryAcquire")).rejects.toThrow(/ENOENT|has ended/);
});
