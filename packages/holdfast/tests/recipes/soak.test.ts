/**
 * Calls that are to be done once, over four processes that are killed at random.
 *
 * `HOLDFAST_SOAK_KEYS=10000` plays more of it, and then also bounds how long a dead process keeps a call from the others.
 */
import { randomInt } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";

const KEYS = Number(process.env.HOLDFAST_SOAK_KEYS ?? 300);
const IS_LONG = KEYS > 1_000;
const AT_ONCE = 100;
const PROCESSES = 4;
const LEASE_MS = 1_000;

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

/** Calls of one process, started anew and asked again when it is killed. */
class Caller {
  #program: Program = start();
  #hasEnded = false;
  kills = 0;

  async ask(keys: readonly string[]): Promise<unknown[]> {
    for (;;) {
      try {
        return await this.#program.call<unknown[]>("many", { keys, leaseMs: LEASE_MS });
      } catch (error) {
        // Ended with the test, which another caller's failure has ended: asking on would hide it.
        if (this.#hasEnded || !(error instanceof Error) || !error.message.includes("SIGKILL")) throw error;
      }
    }
  }

  async kill(): Promise<void> {
    const dying = this.#program;
    this.#program = start();
    this.kills += 1;
    await dying.kill();
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#program.kill();
  }
}

function start(): Program {
  return startProgram(new URL("./programs/runner.mjs", import.meta.url), { port: server.port });
}

test(`of ${KEYS} keys, called for 1 to 5 times each, every one has one result, and all get it`, {
  timeout: 3_600_000,
}, async () => {
  const callers = Array.from({ length: PROCESSES }, () => new Caller());
  const answers = new Map<string, Set<unknown>>();
  let longestMs = 0;
  try {
    for (let first = 0; first < KEYS; first += AT_ONCE) {
      const keys = Array.from({ length: Math.min(AT_ONCE, KEYS - first) }, (_, at) => `call:${first + at}`);
      const asked = callers.map(() => [] as string[]);
      for (const key of keys) {
        for (let count = randomInt(1, 6); count > 0; count -= 1) asked[randomInt(PROCESSES)]?.push(key);
      }
      const startedAt = performance.now();
      const all = callers.map(async (caller, at) => ({
        keys: asked[at] ?? [],
        got: await caller.ask(asked[at] ?? []),
      }));
      // In the middle of the work, as far as chance wants it.
      if (randomInt(2) === 0) {
        await new Promise((resolve) => setTimeout(resolve, randomInt(30)));
        await callers[randomInt(PROCESSES)]?.kill();
      }
      for (const { keys: own, got } of await Promise.all(all)) {
        for (const [at, key] of own.entries()) answers.set(key, (answers.get(key) ?? new Set()).add(got[at]));
      }
      longestMs = Math.max(longestMs, performance.now() - startedAt);
    }
  } finally {
    await Promise.all(callers.map((caller) => caller.end()));
  }
  expect(answers.size).toBeGreaterThan(0);
  for (const [key, got] of answers) {
    expect(got.size, key).toBe(1);
    const [state, token] = await redis.hmget(`hf:once:{/${key}}`, "state", "token");
    expect([state, got.has(Number(token))], key).toEqual(["done", true]);
  }
  const kills = callers.reduce((sum, caller) => sum + caller.kills, 0);
  if (!IS_LONG) return;
  console.log(`${answers.size} keys, ${kills} kills, the slowest ${AT_ONCE} took ${Math.round(longestMs)} ms`);
  expect(kills).toBeGreaterThan(10);
  // A process takes some time to start.
  expect(longestMs).toBeLessThan(LEASE_MS + 1_000 + 2_000);
});
