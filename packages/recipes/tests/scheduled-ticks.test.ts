/**
 * Twenty processes whose clocks are up to 3 s off call at each of 100 ticks in real time. One of them runs.
 *
 * The shortest period is one second, and a tenth of it is less than the timer jitter of a busy machine. Therefore the
 * ticks, five per second, rotate over 25 jobs with a period of 5 s each.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import type { ScheduledResult } from "../src/index.js";

const PROCESSES = 20;
const TICKS = 100;
const JOBS = 25;
const TICK_MS = 200;
/** If the machine is too slow, the test runs once more at this pace. */
const SLOW_TICK_MS = 1_000;
/** Fraction of a period. A call is refused if the last run was requested less than this before. */
const APART = 0.9;
/** Largest offset of the clocks and the timers in each direction. Two clocks may differ by more than a period. */
const CLOCK_MS = 3_000;
const TIMER_MS = 150;
/**
 * Tolerated lateness beyond a tenth of the period. A later call may be so close to the next tick that the rest of this
 * tick or all of the next one is refused.
 */
const LATE_MS = 100;
/** Smallest number of ticks for which the test must verify exactly one start. */
const LEAST_JUDGED = TICKS / 4;

interface Call {
  readonly job: string;
  readonly tick: number;
  /** In server time. */
  readonly atMs: number;
  /** Server time after which the call held nothing. */
  readonly endedAtMs: number;
  readonly result: ScheduledResult<number>;
}

/** Spreads the processes evenly from -1 to 1. */
const spread = (at: number): number => (2 * at) / (PROCESSES - 1) - 1;

test(`each of ${TICKS} ticks has one start, and each refused call has a reason`, { timeout: 600_000 }, async () => {
  if ((await play(TICK_MS)) >= LEAST_JUDGED) return;
  expect(await play(SLOW_TICK_MS), "ticks for which nobody was late").toBeGreaterThanOrEqual(LEAST_JUDGED);
});

/** @returns the number of verified ticks: no process was late for them or for the ticks before them */
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
      // The order differs from that of the clocks, so that timer and clock offsets are independent.
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

/** Asserts that no two runs were requested within one period. @returns the ticks that ran, in order */
function expectApart(calls: readonly Call[], everyMs: number): number[] {
  const runs = calls.filter(({ result }) => result.outcome === "ran").toSorted((a, b) => a.atMs - b.atMs);
  for (const [at, run] of runs.entries()) {
    const before = runs[at - 1]?.atMs ?? Number.NEGATIVE_INFINITY;
    expect(run.atMs - before, `tick ${run.tick}`).toBeGreaterThanOrEqual(APART * everyMs);
  }
  return runs.map(({ tick }) => tick);
}

/** Asserts that each refused call names a run that was too recent or had not ended. */
function expectReasons(calls: readonly Call[], everyMs: number): void {
  const ends = new Map<number, number>();
  for (const { endedAtMs, result } of calls) if (result.outcome === "ran") ends.set(result.value, endedAtMs);
  for (const { atMs, result } of calls) {
    if (result.outcome === "ran") continue;
    const token = result.holder?.token;
    if (token === undefined) expect.fail(`${result.reason} without a run`);
    expect([...ends.keys()]).toContain(token);
    // On a slow machine a run may take longer than a period.
    if (result.reason === "held") {
      expect(ends.get(token)).toBeGreaterThanOrEqual(atMs);
      continue;
    }
    expect(result.reason).toBe("already-done");
    expect(atMs - (result.sinceAtMs ?? 0)).toBeLessThan(APART * everyMs);
  }
}
