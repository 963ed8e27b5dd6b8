/**
 * A cache shared by many processes: a cold key, a loader that crashes or freezes, and a server that is down.
 *
 * `HOLDFAST_CACHE_PROCESSES=50` runs the test with 50 processes.
 */
import { randomUUID } from "node:crypto";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { type Cache, cache } from "../src/index.js";

const PROCESSES = Number(process.env.HOLDFAST_CACHE_PROCESSES ?? 10);
const CALLS = 1_000;
const eventually = { timeout: 60_000, interval: 20 };

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });
let server: RedisServer;
let redis: Redis;
let programs: Program[];
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  programs = Array.from({ length: PROCESSES }, () => start(server.port));
  await Promise.all(programs.map((program) => program.call("connect")));
});

afterAll(async () => {
  await Promise.all((programs ?? []).map((program) => program.kill()));
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  key = randomUUID();
});

function start(port: number, facts: object = {}): Program {
  return startProgram(new URL("./programs/cacher.mjs", import.meta.url), { port, ...facts });
}

async function loads(): Promise<number> {
  return Number(await redis.get(`${key}:loads`));
}

function sum(answers: readonly Record<string, number>[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const [value, count] of answers.flatMap(Object.entries)) all[value] = (all[value] ?? 0) + count;
  return all;
}

describe("a cold key", () => {
  test(`that ${CALLS} calls in ${PROCESSES} processes request is loaded once`, async () => {
    const input = { key, calls: CALLS / PROCESSES, leaseMs: 30_000, loadMs: 200, value: "value" };
    const answers = await Promise.all(programs.map((program) => program.call<Record<string, number>>("get", input)));
    expect(sum(answers)).toEqual({ value: CALLS });
    expect(await loads()).toBe(1);
  });

  test("whose loader is killed is loaded once more, and no caller hangs", async () => {
    const dying = start(server.port);
    const began = dying.heard("loading");
    const input = { key, calls: 20, leaseMs: 1_000, loadMs: 600_000, value: "dead" };
    const killed = dying.call("get", input).catch(() => {});
    await began;
    const waiting = programs.map((program) =>
      program.call<Record<string, number>>("get", { ...input, loadMs: 20, value: "alive" }),
    );
    await vi.waitFor(async () => {
      expect(await redis.hget(`hf:cache:{user/${key}}`, "waited")).toBe("1");
    }, eventually);
    await dying.kill();
    await killed;
    expect(sum(await Promise.all(waiting))).toEqual({ alive: 20 * PROCESSES });
    expect(await loads()).toBe(2);
  });

  test("whose loader freezes beyond its lease is loaded by another process and keeps that value", async () => {
    const late = start(server.port);
    try {
      const began = late.heard("loading");
      const input = { key, calls: 1, leaseMs: 2_000 };
      const answer = late.call("get", { ...input, value: "late" });
      await began;
      late.freeze();
      const [program] = programs as [Program];
      expect(await program.call("get", { ...input, loadMs: 1, value: "second" })).toEqual({ second: 1 });
      late.resume();
      await late.call("finish");
      expect(await answer).toEqual({ late: 1 });
      expect(await program.call("get", { ...input, loadMs: 1, value: "third" })).toEqual({ second: 1 });
    } finally {
      await late.kill();
    }
  });
});

test("while the server is down, each process loads once for all its callers and stores nothing", {
  timeout: 300_000,
}, async () => {
  const own = await startRedis();
  const pair = [1, 2].map(() => start(own.port, { effectsPort: server.port, commandTimeoutMs: 1_000 }));
  try {
    await Promise.all(pair.map((program) => program.call("connect")));
    await own.stop();
    const input = { key, calls: 50, leaseMs: 10_000, loadMs: 50, value: "alone" };
    const answers = await Promise.all(pair.map((program) => program.call<Record<string, number>>("get", input)));
    expect(answers).toEqual([{ alone: 50 }, { alone: 50 }]);
    expect(await loads()).toBe(2);
  } finally {
    await Promise.all(pair.map((program) => program.kill()));
    await own.stop();
  }
});

test('with `whenUnavailable: "reject"`, nothing is loaded while the server is down', async () => {
  const own = await startRedis();
  const client = new Redis({ port: own.port });
  client.on("error", () => {});
  const local = createHoldfast({ redis: client, commandTimeoutMs: 300 });
  const users = cache<string>(local, "user", { whenUnavailable: "reject" });
  await own.stop();
  const load = vi.fn(() => "never");
  await expect(users.get(key, load)).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  await expect(users.invalidate(key)).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  expect(load).not.toHaveBeenCalled();
  await local.close();
  client.disconnect();
});

test("if the server restarts empty during a load, one waiter loads again and all others get its value", async () => {
  const own = await startRedis();
  const clients = [1, 2].map(() => new Redis({ port: own.port, retryStrategy: () => 20 }));
  for (const client of clients) client.on("error", () => {});
  const local = clients.map((client) => createHoldfast({ redis: client, commandTimeoutMs: 20_000 }));
  const [users, others] = local.map((one) => cache<string>(one, "user", { leaseMs: 600_000 })) as [
    Cache<string>,
    Cache<string>,
  ];
  const begun = deferred<void>();
  const ended = deferred<string>();
  const early = users.get(key, () => {
    begun.resolve();
    return ended.promise;
  });
  await begun.promise;
  const load = vi.fn(() => "next");
  const waiting = [1, 2, 3].map(() => others.get(key, load, { waitMs: Infinity }));
  await vi.waitFor(async () => {
    expect(await clients[0]?.hget(`hf:cache:{user/${key}}`, "waited")).toBe("1");
  }, eventually);
  await own.restart();
  expect(await Promise.all(waiting)).toEqual(["next", "next", "next"]);
  ended.resolve("early");
  expect(await early).toBe("early");
  expect(await users.get(key, load)).toBe("next");
  expect(load).toHaveBeenCalledTimes(1);
  await Promise.all(local.map((one) => one.close()));
  for (const client of clients) client.disconnect();
  await own.stop();
});
