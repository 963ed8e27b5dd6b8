/**
 * Many processes increment one versioned value. Their connections are cut again and again, and some crash or freeze.
 *
 * `HOLDFAST_VERSIONED_TIMES=200` counts to 10,000 instead of 1,000.
 */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { recipesVersionedWrite } from "../src/generated/scripts.js";
import { versioned } from "../src/index.js";

const WRITERS = 50;
const TIMES = Number(process.env.HOLDFAST_VERSIONED_TIMES ?? 20);
const PROCESSES = 5;
const eventually = { timeout: 60_000, interval: 10 };
const WRITES_BETWEEN = 40;

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
});

function start(port: number, leaseMs?: number): Program {
  return startProgram(new URL("./programs/incrementer.mjs", import.meta.url), { port, leaseMs });
}

test(`${WRITERS} writers that increment ${TIMES} times reach ${WRITERS * TIMES} although replies are lost`, {
  timeout: 1_200_000,
}, async () => {
  const proxy = await startProxy(server.port);
  const programs = Array.from({ length: PROCESSES }, () => start(proxy.port));
  const write = new RegExp(`^evalsha ${recipesVersionedWrite.sha1}`, "i");
  const over = deferred<void>();
  let isOver = false;
  // Each round loses the reply to one write of one process, and everything else in flight on that connection.
  const losing = (async () => {
    while (!isOver) {
      let passed = 0;
      const isStruck = (words: readonly string[]): boolean => {
        if (write.test(words.join(" "))) passed += 1;
        return passed > WRITES_BETWEEN;
      };
      await Promise.race([proxy.cutBeforeReply(isStruck), over.promise]);
    }
  })();
  try {
    const input = { name, writers: WRITERS / PROCESSES, times: TIMES, promoteAfter: 3 };
    const versions = await Promise.all(programs.map((program) => program.call<number[]>("count", input)));
    expect(new Set(versions.flat()).size).toBe(WRITERS * TIMES);
    expect(await redis.hget(`hf:versioned:{${name}}`, "value")).toBe(String(WRITERS * TIMES));
    expect(proxy.counts.lostReplies).toBeGreaterThan(TIMES / 10);
    if (TIMES >= 200) console.log(`${proxy.counts.lostReplies} replies lost`);
  } finally {
    isOver = true;
    over.resolve();
    await losing;
    await Promise.all(programs.map((program) => program.kill()));
    await proxy.close();
  }
});

test("a killed writer, with or without the mutex, does not block other writers", {
  timeout: 300_000,
}, async () => {
  const dying = Array.from({ length: 3 }, () => start(server.port));
  await Promise.all(
    dying.map(async (program) => {
      const counting = program.heard("counting");
      program.call("countOn", { name }).catch(() => {});
      await counting;
    }),
  );
  await Promise.all(dying.map((program) => program.kill()));
  const before = Number(await redis.hget(`hf:versioned:{${name}}`, "value"));
  expect(before).toBeGreaterThanOrEqual(3);
  // A writer that died with the mutex leaves a lease that lasts for a while. Compare-and-set does not need the mutex.
  const program = start(server.port);
  try {
    const versions = await program.call<number[]>("count", { name, writers: 1, times: 5, promoteAfter: 1_000 });
    expect(versions).toHaveLength(5);
    await vi.waitFor(async () => {
      expect(await redis.hget(`hf:versioned:{${name}}`, "value")).toBe(String(before + 5));
    }, eventually);
  } finally {
    await program.kill();
  }
});

describe("a writer that freezes with the mutex", { timeout: 60_000 }, () => {
  /** Increments once after a conflict, so that it takes the mutex. @returns whether it got the mutex */
  async function countPromoted(): Promise<boolean> {
    const total = versioned<number>(holdfast, name);
    let attempts = 0;
    let wasHeld = false;
    await total.update(
      async (old = 0) => {
        attempts += 1;
        if (attempts === 1) await total.update(() => old + 1);
        wasHeld = holdfast.held().some((lease) => lease.name === name);
        return old + 1;
      },
      { promoteAfter: 1, waitMs: 60_000 },
    );
    return wasHeld;
  }

  /** Resumes it repeatedly until it has answered, because it freezes a moment after it reports. */
  async function thawed(late: Program, answer: Promise<unknown>): Promise<unknown> {
    const waking = setInterval(() => late.resume(), 20);
    return await answer.finally(() => clearInterval(waking));
  }

  test.each([
    ["applied again", 100, { seen: [0, 1, 2], value: 3 }, 3],
    ["given up at its limit", 2, { seen: [0, 1], error: "ConflictError" }, 2],
  ])(
    "within its lease does not block others; its late write is checked by version and is %s",
    async (_, attemptsMax, found, total) => {
      const late = start(server.port, 600_000);
      try {
        const promoted = late.heard("promoted");
        const answer = late.call("countLate", { name, attemptsMax });
        await promoted;
        expect((await holdfast.mutex(name).inspect()).holders).toHaveLength(1);
        await versioned<number>(holdfast, name).update((old = 0) => old + 1);
        expect(await thawed(late, answer)).toEqual(found);
        expect(await redis.hget(`hf:versioned:{${name}}`, "value")).toBe(String(total));
        expect((await holdfast.mutex(name).inspect()).holders).toEqual([]);
      } finally {
        await late.kill();
      }
    },
  );

  test("beyond its lease is succeeded by another mutex holder, and other writes are not lost", async () => {
    const late = start(server.port, 500);
    try {
      const promoted = late.heard("promoted");
      const answer = late.call("countLate", { name, attemptsMax: 100 });
      await promoted;
      expect(await countPromoted()).toBe(true);
      expect(await thawed(late, answer)).toEqual({ seen: [0, 1, 3], value: 4 });
      expect(await redis.hget(`hf:versioned:{${name}}`, "value")).toBe("4");
    } finally {
      await late.kill();
    }
  });
});
