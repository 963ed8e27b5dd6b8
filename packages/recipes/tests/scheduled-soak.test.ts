/**
 * Three instances with different clocks are killed at random, most of them while they run a job. No tick starts twice,
 * and every instance that skips a tick reports a reason.
 *
 * By default the test plays a few ticks and only asserts that no tick starts twice, which holds on slow machines, too.
 * `HOLDFAST_SOAK_TICKS=60` plays 60 ticks of 42 s with clocks up to 2 s off, and asserts that every tick starts.
 */
import { randomInt } from "node:crypto";
import { createHoldfast } from "holdfast";
import { type HistoryEntry, readHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { sleep } from "../../holdfast/src/testing/delays.js";

const TICKS = Number(process.env.HOLDFAST_SOAK_TICKS ?? 3);
const IS_LONG = TICKS > 10;
const EVERY_MS = IS_LONG ? 42_000 : 2_000;
/** Largest clock offset. The instance that ran last may have the slowest clock and the next one the fastest. */
const CLOCK_MS = IS_LONG ? 2_000 : 50;
const WORK_MS = EVERY_MS / 4;
const CRON = IS_LONG ? "*/30 * * * * *" : "*/2 * * * * *";
const INSTANCES = 3;
const JOBS = ["job", "node-cron"] as const;
/** An instance that lives this long after a start has recorded it in the history. */
const TOLD_MS = 1_000;

let server: RedisServer;
let redis: Redis;
let count = 0;
/** When each instance was killed, in server time. The server uses the clock of this machine. */
const killedAtMs = new Map<string, number>();

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

interface Instance {
  readonly name: string;
  readonly program: Program;
}

async function instance(): Promise<Instance> {
  count += 1;
  const name = `instance ${count}`;
  const args = {
    port: server.port,
    instance: name,
    offsetMs: randomInt(-CLOCK_MS, CLOCK_MS + 1),
    everyMs: EVERY_MS,
    workMs: WORK_MS,
    cron: CRON,
  };
  const program = startProgram(new URL("./programs/ticker.mjs", import.meta.url), args);
  await program.call("start");
  return { name, program };
}

async function kill({ name, program }: Instance): Promise<void> {
  killedAtMs.set(name, Date.now());
  await program.kill();
}

interface Note {
  readonly instance: string;
  /** Identifies the call among the calls of that instance. */
  readonly call: string | number;
  readonly tick: string | number;
  /** Set for a start of the job. */
  readonly token?: number;
  /** Set for a start by node-cron: the time without the clock offset. */
  readonly atMs?: number;
  readonly reason?: string;
}

async function notes(list: string): Promise<readonly Note[]> {
  return (await redis.lrange(list, 0, -1)).map((text) => JSON.parse(text) as Note);
}

test(`of ${TICKS} ticks none starts twice, and each skip has a reason`, { timeout: 7_200_000 }, async () => {
  const running = await Promise.all(Array.from({ length: INSTANCES }, instance));
  let kills = 0;
  // From the first tick that every instance sees to the last one that every instance has seen.
  const first = Math.ceil(Date.now() / EVERY_MS) + 1;
  const endsAtMs = (first + TICKS - 0.5) * EVERY_MS;
  try {
    while (Date.now() < endsAtMs) {
      const at = randomInt(INSTANCES);
      const victim = running[at] as Instance;
      const restMs = Math.max(0, endsAtMs - Date.now());
      const how = randomInt(3);
      // Kills at a random time or as soon as the instance runs one of the two jobs.
      const moment = how === 0 ? sleep(randomInt(EVERY_MS)) : victim.program.heard(how === 1 ? "job" : "node-cron");
      await Promise.race([moment, sleep(Math.min(restMs, EVERY_MS))]);
      if (Date.now() >= endsAtMs) break;
      await kill(victim);
      kills += 1;
      running[at] = await instance();
    }
    // Waits for one more start of each job in a process that survives.
    const begun = await Promise.all(JOBS.map((job) => redis.llen(`starts:${job}`)));
    for (const [at, job] of JOBS.entries()) {
      await vi.waitFor(async () => expect(await redis.llen(`starts:${job}`)).toBeGreaterThan(begun[at] ?? 0), {
        timeout: 5 * EVERY_MS,
      });
    }
    await settled();
  } finally {
    await Promise.all(running.map(kill));
  }
  for (const job of JOBS) {
    const [calls = [], starts = [], skips = []] = await Promise.all(
      ["calls", "starts", "skips"].map((list) => notes(`${list}:${job}`)),
    );
    const ticks = starts.map(({ tick }) => tick);
    expect(new Set(ticks).size, `${job}: each tick once`).toBe(ticks.length);
    expect(ticks.length).toBeGreaterThan(0);
    for (const { reason } of skips) {
      expect(["already-done", "held"], `${job}: a reason`).toContain(reason);
    }
    expectHeard(job, calls, [...starts, ...skips]);
    await expectHistory(job, starts);
    if (!IS_LONG) continue;
    console.log(
      `${job}: ${ticks.length} starts of ${calls.length} calls, ${kills} kills; skipped: ${reasonsOf(skips)}`,
    );
    const own = job === "job" ? ticks.filter((tick) => Number(tick) >= first && Number(tick) < first + TICKS) : ticks;
    expect(own.length).toBe(job === "job" ? TICKS : expectedFires(ticks));
  }
  expect(await redis.llen("errors:job")).toBe(0);
});

/**
 * Asserts that each call of an instance has exactly one answer. The last call may have none, because the instance may
 * have been killed before it answered.
 */
function expectHeard(job: string, calls: readonly Note[], answers: readonly Note[]): void {
  const inOrder = (calls: readonly string[]): string[] => calls.toSorted((a, b) => a.localeCompare(b));
  const of = (notes: readonly Note[], name: string): string[] =>
    notes.filter((each) => each.instance === name).map(({ call }) => String(call));
  for (const name of new Set([...calls, ...answers].map((each) => each.instance))) {
    const [made, heard] = [of(calls, name), of(answers, name)];
    const unheard = made.filter((call) => !heard.includes(call));
    expect([[], made.slice(-1)], `${job}: ${name} says why`).toContainEqual(unheard);
    expect(inOrder([...heard, ...unheard]), `${job}: ${name} says it once`).toEqual(inOrder(made));
  }
}

/** `80 already-done, 1 held` */
function reasonsOf(skips: readonly Note[]): string {
  const counts = new Map<string, number>();
  for (const { reason = "" } of skips) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, many]) => `${many} ${reason}`).join(", ");
}

/** Number of scheduled ticks from the first start to the last. */
function expectedFires(ticks: readonly (string | number)[]): number {
  const times = ticks.map((tick) => Date.parse(String(tick)));
  return (Math.max(...times) - Math.min(...times)) / 30_000 + 1;
}

/** Waits until the last calls have been answered and the history contains the last starts. */
async function settled(): Promise<void> {
  await sleep(TOLD_MS + 500);
}

/** Call when all instances are dead. The history has each start that its process could record, and no open entry. */
async function expectHistory(name: string, starts: readonly Note[]): Promise<void> {
  const holdfast = createHoldfast({ redis });
  try {
    const read = { name, limit: 10_000 } as const;
    await vi.waitFor(async () => expect(await readHistory(holdfast, { ...read, outcome: ["held"] })).toEqual([]));
    const entries = await readHistory(holdfast, { ...read, outcome: ["released", "expired", "lost"] });
    const isOf = (entry: HistoryEntry, { token, call }: Note): boolean =>
      token === undefined ? entry.tick === call : entry.token === token;
    const told = starts.filter(({ instance: by, token = 0, atMs = token / 1_000 }) => {
      return (killedAtMs.get(by) ?? 0) - atMs > TOLD_MS;
    });
    expect(told.length, `${name}: starts whose process lived on`).toBeGreaterThan(0);
    for (const start of told) {
      expect(
        entries.filter((entry) => isOf(entry, start)),
        `${name}: ${JSON.stringify(start)}`,
      ).toHaveLength(1);
    }
    if (!IS_LONG) return;
    const died = entries.filter(({ outcome }) => outcome === "expired").length;
    console.log(`history of ${name}: ${entries.length} runs, of which ${died} died`);
  } finally {
    await holdfast.close();
  }
}
