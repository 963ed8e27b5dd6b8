/**
 * `once` in four processes that are killed at random.
 *
 * `HOLDFAST_SOAK_KEYS=10000` runs longer, and also limits how long a dead process may block a call.
 */
import { randomInt } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { expectTakeover } from "./takeover.js";

const KEYS = Number(process.env.HOLDFAST_SOAK_KEYS ?? 300);
const IS_LONG = KEYS > 1_000;
const AT_ONCE = 100;
const PROCESSES = 4;
/** Long enough that a slow machine does not lose the lease. */
const LEASE_MS = IS_LONG ? 1_000 : 3_000;

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

/** Calls of one process. If the process is killed, it is restarted and the calls are repeated. */
class Caller {
  #program: Program = start();
  #hasEnded = false;
  kills = 0;

  async ask(keys: readonly string[], stalls = false): Promise<unknown[]> {
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await this.#program.call<unknown[]>("many", { keys, leaseMs: LEASE_MS, stalls: stalls && isFirst });
      } catch (error) {
        // The test has ended because another caller failed. A retry would hide that failure.
        if (this.#hasEnded || !(error instanceof Error) || !error.message.includes("SIGKILL")) throw error;
      }
    }
  }

  /** Makes calls and stalls in one of them until the process is killed. @returns the key of that call */
  async stall(keys: readonly string[]): Promise<{ key: string; got: Promise<unknown[]> }> {
    const running = this.#program.heard("running");
    const got = this.ask(keys, true);
    const key = await Promise.race([running, got.then(() => expect.fail("it has answered, and runs nothing"))]);
    return { key: key as string, got };
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

/** A call whose runner may have been killed. */
interface Left {
  readonly key: string;
  readonly attempt: number;
  /** In server time. */
  readonly endsAtMs: number;
}

/** Returns the calls that are still recorded as running. */
async function leftRunning(keys: Iterable<string>): Promise<Left[]> {
  const left: Left[] = [];
  for (const key of keys) {
    const [state, attempt, until] = await redis.hmget(`hf:once:{/${key}}`, "state", "attempt", "until");
    if (state === "running") left.push({ key, attempt: Number(attempt), endsAtMs: Number(until) / 1_000 });
  }
  return left;
}

/** Asserts that each call with a new runner was taken over soon after its lease ended. @returns the delays in ms */
async function takeoversMs(left: readonly Left[]): Promise<number[]> {
  const afterMs: number[] = [];
  for (const { key, attempt, endsAtMs } of left) {
    const [now, token] = await redis.hmget(`hf:once:{/${key}}`, "attempt", "token");
    // Skips calls that their own runner finished, and calls with more than one takeover.
    if (Number(now) !== attempt + 1) continue;
    expectTakeover(Number(token), { leaseMs: endsAtMs });
    afterMs.push(Number(token) / 1_000 - endsAtMs);
  }
  return afterMs;
}

function start(): Program {
  return startProgram(new URL("./programs/runner.mjs", import.meta.url), { port: server.port });
}

test(`each of ${KEYS} keys, called 1 to 5 times, has one result that all callers get`, {
  timeout: 3_600_000,
}, async () => {
  const callers = Array.from({ length: PROCESSES }, () => new Caller());
  const answers = new Map<string, Set<unknown>>();
  /** Keys of calls that ran when their process was killed. `struck`: upper limit of the calls of those processes. */
  const hits: string[] = [];
  let struck = 0;
  let longestMs = 0;
  const takenOverMs: number[] = [];
  try {
    for (let first = 0; first < KEYS; first += AT_ONCE) {
      const keys = Array.from({ length: Math.min(AT_ONCE, KEYS - first) }, (_, at) => `call:${first + at}`);
      const asked = callers.map(() => [] as string[]);
      for (const key of keys) {
        for (let count = randomInt(1, 6); count > 0; count -= 1) asked[randomInt(PROCESSES)]?.push(key);
      }
      const startedAt = performance.now();
      let left: Left[] = [];
      const victim = first === 0 || randomInt(2) === 0 ? randomInt(PROCESSES) : undefined;
      const all = callers.map(async (caller, at) => {
        const own = asked[at] ?? [];
        if (at !== victim) return { keys: own, got: await caller.ask(own) };
        // No other process calls this key, so this process is certain to run at least one call.
        own.push(`call:of-the-dead:${first}`);
        const { key, got } = await caller.stall(own);
        // A random delay, so that more of its calls may be running.
        await new Promise((resolve) => setTimeout(resolve, randomInt(30)));
        await caller.kill();
        left = await leftRunning(new Set(own));
        hits.push(key);
        struck += new Set(own).size;
        return { keys: own, got: await got };
      });
      for (const { keys: own, got } of await Promise.all(all)) {
        for (const [at, key] of own.entries()) answers.set(key, (answers.get(key) ?? new Set()).add(got[at]));
      }
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      takenOverMs.push(...(await takeoversMs(left)));
    }
  } finally {
    await Promise.all(callers.map((caller) => caller.end()));
  }
  expect(hits.length).toBeGreaterThan(0);
  // One for each call that was hit, and more for other calls of the killed processes.
  expect(takenOverMs.length).toBeGreaterThanOrEqual(hits.length);
  let effects = 0;
  for (const [key, got] of answers) {
    expect(got.size, key).toBe(1);
    const [state, token, attempt] = await redis.hmget(`hf:once:{/${key}}`, "state", "token", "attempt");
    expect([state, got.has(Number(token))], key).toEqual(["done", true]);
    const own = Number(await redis.get(`${key}:effects`));
    expect(own, key).toBeGreaterThanOrEqual(hits.includes(key) ? 2 : 1);
    // Each run is an attempt. A killed run may have had no effect.
    expect(own, key).toBeLessThanOrEqual(Number(attempt));
    effects += own;
  }
  // Processes that were not killed ran no call twice.
  expect(effects).toBeLessThanOrEqual(answers.size + struck);
  const kills = callers.reduce((sum, caller) => sum + caller.kills, 0);
  if (!IS_LONG) return;
  const latestMs = Math.max(...takenOverMs);
  console.log(
    `${answers.size} keys, ${kills} kills, the slowest ${AT_ONCE} took ${Math.round(longestMs)} ms;`,
    `${takenOverMs.length} were taken over, ${Math.round(latestMs)} ms after the lease at the latest`,
  );
  expect(latestMs).toBeLessThan(1_000);
  expect(kills).toBeGreaterThan(10);
  // The last two seconds allow for the start of a process.
  expect(longestMs).toBeLessThan(LEASE_MS + 1_000 + 2_000);
});
