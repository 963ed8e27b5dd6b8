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
import { expectTakeover } from "./takeover.js";

const KEYS = Number(process.env.HOLDFAST_SOAK_KEYS ?? 300);
const IS_LONG = KEYS > 1_000;
const AT_ONCE = 100;
const PROCESSES = 4;
/** What a slow machine does not lose by itself. */
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

/** Calls of one process, started anew and asked again when it is killed. */
class Caller {
  #program: Program = start();
  #hasEnded = false;
  kills = 0;

  async ask(keys: readonly string[], stalls = false): Promise<unknown[]> {
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await this.#program.call<unknown[]>("many", { keys, leaseMs: LEASE_MS, stalls: stalls && isFirst });
      } catch (error) {
        // Ended with the test, which another caller's failure has ended: asking on would hide it.
        if (this.#hasEnded || !(error instanceof Error) || !error.message.includes("SIGKILL")) throw error;
      }
    }
  }

  /** Asks, and is then in the middle of a call that does not end before it is killed. @returns its key */
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
  /** By the clock of the server. */
  readonly endsAtMs: number;
}

/** Which of the keys are running. */
async function leftRunning(keys: Iterable<string>): Promise<Left[]> {
  const left: Left[] = [];
  for (const key of keys) {
    const [state, attempt, until] = await redis.hmget(`hf:once:{/${key}}`, "state", "attempt", "until");
    if (state === "running") left.push({ key, attempt: Number(attempt), endsAtMs: Number(until) / 1_000 });
  }
  return left;
}

/** Each that has had another runner since had it when its lease was over, and soon after. @returns by how much, in ms */
async function takeoversMs(left: readonly Left[]): Promise<number[]> {
  const afterMs: number[] = [];
  for (const { key, attempt, endsAtMs } of left) {
    const [now, token] = await redis.hmget(`hf:once:{/${key}}`, "attempt", "token");
    // Those of a runner that lives have ended as they began; who was killed twice was looked at twice.
    if (Number(now) !== attempt + 1) continue;
    expectTakeover(Number(token), { leaseMs: endsAtMs });
    afterMs.push(Number(token) / 1_000 - endsAtMs);
  }
  return afterMs;
}

function start(): Program {
  return startProgram(new URL("./programs/runner.mjs", import.meta.url), { port: server.port });
}

test(`of ${KEYS} keys, called for 1 to 5 times each, every one has one result, and all get it`, {
  timeout: 3_600_000,
}, async () => {
  const callers = Array.from({ length: PROCESSES }, () => new Caller());
  const answers = new Map<string, Set<unknown>>();
  /** Keys of calls that a kill hit while they ran, and how many at most were with those that were killed. */
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
        // No other has that one, so that there is one for it to be in the middle of.
        own.push(`call:of-the-dead:${first}`);
        const { key, got } = await caller.stall(own);
        // With more of its work running, as far as chance wants it.
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
  // One for each that was hit, and the others that were with the dead.
  expect(takenOverMs.length).toBeGreaterThanOrEqual(hits.length);
  let effects = 0;
  for (const [key, got] of answers) {
    expect(got.size, key).toBe(1);
    const [state, token, attempt] = await redis.hmget(`hf:once:{/${key}}`, "state", "token", "attempt");
    expect([state, got.has(Number(token))], key).toEqual(["done", true]);
    const own = Number(await redis.get(`${key}:effects`));
    expect(own, key).toBeGreaterThanOrEqual(hits.includes(key) ? 2 : 1);
    // Each run of it is an attempt; one that was killed may not have come to its effect.
    expect(own, key).toBeLessThanOrEqual(Number(attempt));
    effects += own;
  }
  // Whoever was not killed has done nothing twice.
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
  // A process takes some time to start.
  expect(longestMs).toBeLessThan(LEASE_MS + 1_000 + 2_000);
});
