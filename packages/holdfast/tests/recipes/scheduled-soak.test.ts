/**
 * Three instances whose clocks differ, killed at random, most of them while they run: each tick is started once, and who did not
 * run says why.
 *
 * By itself it plays some ticks and holds only for what no slow machine can change: never twice. `HOLDFAST_SOAK_TICKS=60` plays
 * so many of 42 s, with clocks 2 s to either side, and then each tick has to have its start.
 */
import { randomInt } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { readHistory } from "../../src/admin/index.js";
import { createHoldfast } from "../../src/index.js";
import { sleep } from "../../src/testing/delays.js";

const TICKS = Number(process.env.HOLDFAST_SOAK_TICKS ?? 3);
const IS_LONG = TICKS > 10;
const EVERY_MS = IS_LONG ? 42_000 : 1_200;
/** Whoever ran last may be the slowest, and dead: then the fastest is to be far enough from it. */
const CLOCK_MS = IS_LONG ? 2_000 : 50;
const WORK_MS = EVERY_MS / 4;
const CRON = IS_LONG ? "*/30 * * * * *" : "*/2 * * * * *";
const INSTANCES = 3;

let server: RedisServer;
let redis: Redis;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

async function instance(): Promise<Program> {
  count += 1;
  const args = {
    port: server.port,
    instance: `instance ${count}`,
    offsetMs: randomInt(-CLOCK_MS, CLOCK_MS + 1),
    everyMs: EVERY_MS,
    workMs: WORK_MS,
    cron: CRON,
  };
  const program = startProgram(new URL("./programs/ticker.mjs", import.meta.url), args);
  await program.call("start");
  return program;
}

interface Note {
  readonly instance: string;
  readonly tick: string | number;
  readonly reason?: string;
}

async function notes(list: string): Promise<readonly Note[]> {
  return (await redis.lrange(list, 0, -1)).map((text) => JSON.parse(text) as Note);
}

test(`of ${TICKS} ticks none is started twice, and each skip has its reason`, { timeout: 7_200_000 }, async () => {
  const running = await Promise.all(Array.from({ length: INSTANCES }, instance));
  let kills = 0;
  // From the first tick that all of them see, to one that all have seen.
  const first = Math.ceil(Date.now() / EVERY_MS) + 1;
  const endsAtMs = (first + TICKS - 0.5) * EVERY_MS;
  try {
    while (Date.now() < endsAtMs) {
      const at = randomInt(INSTANCES);
      const victim = running[at] as Program;
      const restMs = Math.max(0, endsAtMs - Date.now());
      const how = randomInt(3);
      // At any time, or as soon as it runs the one or the other.
      const moment = how === 0 ? sleep(randomInt(EVERY_MS)) : victim.heard(how === 1 ? "job" : "node-cron");
      await Promise.race([moment, sleep(Math.min(restMs, EVERY_MS))]);
      if (Date.now() >= endsAtMs) break;
      await victim.kill();
      kills += 1;
      running[at] = await instance();
    }
    await settled();
  } finally {
    await Promise.all(running.map((program) => program.kill()));
  }
  for (const job of ["job", "node-cron"]) {
    const [calls, starts, skips] = await Promise.all(
      ["calls", "starts", "skips"].map((list) => notes(`${list}:${job}`)),
    );
    const ticks = (starts ?? []).map(({ tick }) => tick);
    expect(new Set(ticks).size, `${job}: each tick once`).toBe(ticks.length);
    expect(ticks.length).toBeGreaterThan(0);
    for (const { reason } of skips ?? []) {
      expect(["already-done", "held", "unavailable"], `${job}: a reason`).toContain(reason);
    }
    const unheard = (calls ?? []).length - (starts ?? []).length - (skips ?? []).length;
    // Each that was killed may have been about to say.
    expect(unheard).toBeGreaterThanOrEqual(0);
    expect(unheard, `${job}: who did not run says why`).toBeLessThanOrEqual(kills + INSTANCES);
    if (!IS_LONG) continue;
    console.log(
      `${job}: ${ticks.length} starts of ${calls?.length} calls, ${kills} kills; skipped: ${reasonsOf(skips ?? [])}`,
    );
    const own = job === "job" ? ticks.filter((tick) => Number(tick) >= first && Number(tick) < first + TICKS) : ticks;
    expect(own.length).toBe(job === "job" ? TICKS : expectedFires(ticks));
  }
  expect(await redis.llen("errors:job")).toBe(0);
  await expectHistory();
});

/** `80 already-done, 1 held` */
function reasonsOf(skips: readonly Note[]): string {
  const counts = new Map<string, number>();
  for (const { reason = "" } of skips) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, many]) => `${many} ${reason}`).join(", ");
}

/** All fires of the schedule between the first start and the last. */
function expectedFires(ticks: readonly (string | number)[]): number {
  const times = ticks.map((tick) => Date.parse(String(tick)));
  return (Math.max(...times) - Math.min(...times)) / 30_000 + 1;
}

/** Nothing is told of any more: the last calls have been answered. */
async function settled(): Promise<void> {
  await sleep(Math.min(2_000, EVERY_MS / 4));
}

/** All are dead by now: the history has each start, and none that goes on. */
async function expectHistory(): Promise<void> {
  const holdfast = createHoldfast({ redis });
  const isOver = async (): Promise<boolean> => {
    const entries = await readHistory(holdfast, { name: "job", limit: 10_000, outcome: ["held"] });
    return entries.length === 0;
  };
  while (!(await isOver())) await sleep(100);
  const entries = await readHistory(holdfast, {
    name: "job",
    limit: 10_000,
    outcome: ["released", "expired", "lost"],
  });
  const starts = await redis.llen("starts:job");
  // The last may have been killed before it was told.
  expect(entries.length).toBeGreaterThanOrEqual(starts - count);
  if (IS_LONG)
    console.log(
      `history: ${entries.length} runs, of which ${entries.filter(({ outcome }) => outcome === "expired").length} died`,
    );
  await holdfast.close();
}
