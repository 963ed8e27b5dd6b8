/**
 * Twenty processes whose clocks are wrong by up to 3 s call at each of 100 ticks, in real time: one of them runs.
 *
 * The smallest period is a second, and a tenth of it is too little for what a busy machine does to timers. So the ticks, five in a
 * second, go round 25 jobs, each with a period of 5 s.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startProgram } from "../../../../tests/support/program.js";
import { startRedis } from "../../../../tests/support/redis-server.js";
import type { ScheduledResult } from "../../src/recipes/index.js";

const PROCESSES = 20;
const TICKS = 100;
const JOBS = 25;
const TICK_MS = 200;
/** Where that is too little for the machine it is played once more, at this pace. */
const SLOW_TICK_MS = 1_000;
/** Of a period. A call is refused when the last run was called for less than this before. */
const APART = 0.9;
/** How far the clocks are from the truth, and the timers, to either side. Two clocks may be more than a period apart. */
const CLOCK_MS = 3_000;
const TIMER_MS = 150;
/** Whoever is later than a tenth of the period, and this, may be too near to the next tick: then the rest of this tick, or all of the next, is refused. */
const LATE_MS = 100;
/** Of so many ticks at least it is known that they have one start. */
const LEAST_JUDGED = TICKS / 4;

interface Call {
  readonly job: string;
  readonly tick: number;
  /** By the clock of the server. */
  readonly atMs: number;
  /** After that it held nothing, by the same clock. */
  readonly endedAtMs: number;
  readonly result: ScheduledResult<number>;
}

/** From -1 to 1. */
const spread = (at: number): number => (2 * at) / (PROCESSES - 1) - 1;

test(`each of ${TICKS} ticks has one start, and who did not run says why`, { timeout: 600_000 }, async () => {
  if ((await play(TICK_MS)) >= LEAST_JUDGED) return;
  expect(await play(SLOW_TICK_MS), "ticks for which nobody was late").toBeGreaterThanOrEqual(LEAST_JUDGED);
});

/** @returns how many ticks had their start for certain: for them, and the ticks before them, nobody was late */
async function play(tickMs: number): Promise<number> {
  const everyMs = JOBS * tickMs;
  let judged = 0;
  const server = await startRedis();
  const redis = new Redis({ port: server.port });
  const url = new URL("./programs/timetable.mjs", import.meta.url);
  const programs = Array.from({ length: PROCESSES }, (_, at) =>
    startProgram(url, { port: server.port, offsetMs: Math.round(spread(at) * CLOCK_MS) }),
  );
  try {
    await Promise.all(programs.map((program) => program.call("ready")));
    const jobs = Array.from({ length: JOBS }, () => randomUUID());
    const startAtMs = Date.now() + 1_000;
    const timetable = { jobs, ticks: TICKS, tickMs, startAtMs };
    const calls = await Promise.all(
      // Whose timer is early is not whose clock is.
      programs.map((program, at) =>
        program.call<Call[]>("play", { ...timetable, shiftMs: Math.round(spread((at * 7) % PROCESSES) * TIMER_MS) }),
      ),
    );
    for (const [at, job] of jobs.entries()) {
      const own = calls.flat().filter((call) => call.job === job);
      expect(own).toHaveLength((PROCESSES * TICKS) / JOBS);
      const starts = expectApart(own, everyMs);
      expectReasons(own, everyMs);
      expect((await redis.lrange(`${job}:starts`, 0, -1)).map(Number)).toEqual(starts);
      const latenessMs = (tick: number): number =>
        Math.max(...own.filter((call) => call.tick === tick).map(({ atMs }) => atMs - startAtMs - tick * tickMs));
      for (let tick = at; tick < TICKS; tick += JOBS) {
        const lateMs = everyMs / 10 + LATE_MS;
        if (latenessMs(tick) > lateMs || latenessMs(tick - JOBS) > lateMs) continue;
        judged += 1;
        expect(
          starts.filter((each) => each === tick),
          `starts of tick ${tick}`,
        ).toHaveLength(1);
      }
    }
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
    redis.disconnect();
    await server.stop();
  }
  return judged;
}

/** However slow the machine is, no two runs were called for within one period. @returns the ticks that were run, in order */
function expectApart(calls: readonly Call[], everyMs: number): number[] {
  const runs = calls.filter(({ result }) => result.outcome === "ran").toSorted((a, b) => a.atMs - b.atMs);
  for (const [at, run] of runs.entries()) {
    const before = runs[at - 1]?.atMs ?? Number.NEGATIVE_INFINITY;
    expect(run.atMs - before, `tick ${run.tick}`).toBeGreaterThanOrEqual(APART * everyMs);
  }
  return runs.map(({ tick }) => tick);
}

/** Each that was refused names a run, so near that it was right to be refused, or one that had not ended. */
function expectReasons(calls: readonly Call[], everyMs: number): void {
  const ends = new Map<number, number>();
  for (const { endedAtMs, result } of calls) if (result.outcome === "ran") ends.set(result.value, endedAtMs);
  for (const { atMs, result } of calls) {
    if (result.outcome === "ran") continue;
    const token = result.holder?.token;
    if (token === undefined) expect.fail(`${result.reason} without a run`);
    expect([...ends.keys()]).toContain(token);
    // On a slow machine it may take longer than a period.
    if (result.reason === "held") {
      expect(ends.get(token)).toBeGreaterThanOrEqual(atMs);
      continue;
    }
    expect(result.reason).toBe("already-done");
    expect(atMs - (result.sinceAtMs ?? 0)).toBeLessThan(APART * everyMs);
  }
}
