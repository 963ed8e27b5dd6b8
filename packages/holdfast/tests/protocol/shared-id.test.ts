/** Two processes that were copied from one have the same client id: they are told, and nobody else is. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { clientRecords } from "../../src/client-record/client-record.js";
import { systemRuntime } from "../../src/core/runtime.js";
import { storeFor } from "../../src/stores/detect.js";
import { until } from "../../src/testing/delays.js";

let server: RedisServer;
let redis: Redis;
const warnings: (Error & { readonly code?: string; readonly detail?: string })[] = [];
const collect = (warning: Error): void => void warnings.push(warning);

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});
beforeEach(() => {
  warnings.length = 0;
  process.on("warning", collect);
});
afterEach(() => {
  process.off("warning", collect);
});

const shared = (): typeof warnings => warnings.filter(({ code }) => code === "HOLDFAST_SHARED_ID");

/** What a process knows of itself; each call is a copy that goes on by itself. */
function copyOf(clientId: string): { announce: () => Promise<void> } {
  const facts = { prefix: "hf", clientId, clientName: "", timeoutMs: 5_000, runtime: systemRuntime };
  const { records } = clientRecords(storeFor(redis), facts);
  return { announce: () => records.announce(60_000) };
}

test("a copy that announces itself after the other is told once, with what to do", async () => {
  const clientId = randomUUID();
  const [first, second] = [copyOf(clientId), copyOf(clientId)];
  await first.announce();
  await first.announce();
  await second.announce();
  await first.announce();
  await until(() => shared().length > 0, "a warning");
  await new Promise(setImmediate);
  expect(shared()).toHaveLength(1);
  expect(`${shared()[0]?.message} ${shared()[0]?.detail}`).toMatch(
    new RegExp(`${clientId} runs in two processes.*pid ${process.pid} on .*createHoldfast after the snapshot`),
  );
});

test("copies made while the process was in use are told as well", async () => {
  const clientId = randomUUID();
  const [original, copy] = [copyOf(clientId), copyOf(clientId)];
  await original.announce();
  const record = await redis.hgetall(`hf:client:${clientId}`);
  await original.announce();
  expect((await redis.hgetall(`hf:client:${clientId}`)).nonce).not.toBe(record.nonce);
  await copy.announce();
  await until(() => shared().length > 0, "a warning");
});

test("one process is not told, whatever becomes of its requests and of the server's memory", async () => {
  const clientId = randomUUID();
  const only = copyOf(clientId);
  const key = `hf:client:${clientId}`;
  await only.announce();
  const early = await redis.hgetall(key);
  await Promise.all([only.announce(), only.announce()]);
  for (let i = 0; i < 10; i += 1) await only.announce();
  // A replica that takes over may know an earlier record, or none.
  await redis.hset(key, early);
  await only.announce();
  await redis.del(key);
  await only.announce();
  // A client of an earlier version writes no nonce.
  await redis.hdel(key, "nonce");
  await only.announce();
  await new Promise(setImmediate);
  expect(shared()).toEqual([]);
});

test("a write that runs after a later one of the same process is no reason to warn", async () => {
  const store = storeFor(redis);
  let deliver = (): void => {};
  const held = new Promise<void>((resolve) => {
    deliver = resolve;
  });
  let calls = 0;
  // The first write is under way for so long that the second one is carried out before it.
  const slow: typeof store = {
    ...store,
    run: async (...call) => {
      calls += 1;
      if (calls === 1) await held;
      return store.run(...call);
    },
  };
  const facts = { prefix: "hf", clientId: randomUUID(), clientName: "", timeoutMs: 5_000, runtime: systemRuntime };
  const { records } = clientRecords(slow, facts);
  const first = records.announce(60_000);
  await records.announce(60_000);
  deliver();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  expect(shared()).toEqual([]);
});
