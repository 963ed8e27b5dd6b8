/** Two copies of one process share a client id. Holdfast warns about them and about no other process. */
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

/** The client record of one process. Each call returns an independent copy. */
function copyOf(clientId: string): { announce: () => Promise<void> } {
  const facts = { prefix: "hf", clientId, clientName: "", timeoutMs: 5_000, runtime: systemRuntime };
  const { records } = clientRecords(storeFor(redis), facts);
  return { announce: () => records.announce(60_000) };
}

test("Holdfast warns once, with a remedy, when a copy of a process announces itself", async () => {
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
    new RegExp(`${clientId} runs in two processes.*pid ${process.pid} on .*createHoldfast only after the copy`),
  );
});

test("Holdfast also warns about a copy made after the process announced itself", async () => {
  const clientId = randomUUID();
  const [original, copy] = [copyOf(clientId), copyOf(clientId)];
  await original.announce();
  const record = await redis.hgetall(`hf:client:${clientId}`);
  await original.announce();
  expect((await redis.hgetall(`hf:client:${clientId}`)).nonce).not.toBe(record.nonce);
  await copy.announce();
  await until(() => shared().length > 0, "a warning");
});

test("a single process causes no warning, even if the server loses or reverts its record", async () => {
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

test("a delayed write that runs after a later one of the same process causes no warning", async () => {
  const store = storeFor(redis);
  let deliver = (): void => {};
  const held = new Promise<void>((resolve) => {
    deliver = resolve;
  });
  let calls = 0;
  // The first write is delayed so long that the second one runs before it.
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
