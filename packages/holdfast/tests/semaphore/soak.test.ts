/**
 * Three processes of twenty callers each use one semaphore while the test kills processes at random.
 *
 * HOLDFAST_SOAK_SECONDS sets the duration (default 4). HOLDFAST_SEED repeats the random choices of a run.
 */
import { randomInt, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/index.js";
import { LONG_MS, SOON_MS, sleep } from "../../src/testing/delays.js";
import { type Interval, mostAtOnce, overlaps } from "./intervals.js";

const FOR_MS = Number(env.HOLDFAST_SOAK_SECONDS ?? 4) * 1_000;
const PERMITS = 10;
const PROCESSES = 3;
const CALLERS = 20;
/** Long enough that a stalled machine rarely loses a lease. The permits of a killed holder stay taken for this long. */
const LEASE_MS = SOON_MS;

interface Turn extends Interval {
  readonly caller: string;
  readonly slots: readonly number[];
}

test(
  "a semaphore never exceeds its permits, loses none to crashes and serves every caller",
  async () => {
    const seed = Number(env.HOLDFAST_SEED ?? randomInt(1_000_000));
    const random = randomFrom(seed);
    const directory = mkdtempSync(join(tmpdir(), "holdfast-soak-"));
    const server = await startRedis();
    const name = randomUUID();
    const logs: { readonly path: string; killedAtMs: number }[] = [];
    const running: { readonly program: Program; readonly log: (typeof logs)[number] }[] = [];
    const start = async (): Promise<void> => {
      const log = { path: join(directory, `${logs.length}.jsonl`), killedAtMs: Infinity };
      const facts = { port: server.port, name, permits: PERMITS, callers: CALLERS, leaseMs: LEASE_MS };
      const url = new URL("./programs/callers.mjs", import.meta.url);
      const program = startProgram(url, { ...facts, waitMs: 2 * LONG_MS, seed: seed + logs.length, log: log.path });
      logs.push(log);
      running.push({ program, log });
      await program.call("start");
    };
    const redis = new Redis({ port: server.port });
    const holdfast = createHoldfast({ redis });
    try {
      for (let i = 0; i < PROCESSES; i += 1) await start();
      const endAtMs = performance.now() + FOR_MS;
      while (performance.now() < endAtMs) {
        await sleep(Math.min(500 + random() * 1_000, Math.max(0, endAtMs - performance.now())));
        const [victim] = running.splice(Math.floor(random() * running.length), 1);
        if (victim === undefined) throw new Error("there are always three");
        victim.log.killedAtMs = sharedClockMs();
        await victim.program.kill();
        await start();
      }
      // Rejects with AcquireTimeoutError if a caller of a live process does not get its turn.
      await Promise.all(running.map(({ program }) => program.call("stop")));

      // The permits of the last killed process stay taken until its leases end, and no longer.
      const semaphore = holdfast.semaphore(name, { permits: PERMITS });
      const all = await semaphore.acquire({ permits: PERMITS, waitMs: LEASE_MS + SOON_MS });
      expect(all.slots).toEqual(Array.from({ length: PERMITS }, (_, slot) => slot));
      await all.release();
      expect(await semaphore.inspect()).toMatchObject({ holders: [], waiterCount: 0, used: 0, capacity: PERMITS });

      const turns = logs.flatMap(turnsOf);
      const most = mostAtOnce(turns);
      console.log(
        `semaphore soak (seed ${seed}): ${turns.length} turns in ${FOR_MS / 1_000} s, ${logs.length - PROCESSES} processes killed, at most ${most} of ${PERMITS} permits at once`,
      );
      expect(most, `seed ${seed}`).toBeLessThanOrEqual(PERMITS);
      expect(most, "it was under load").toBeGreaterThan(PERMITS - 4);
      expect(overlaps(turns), "no number was two callers' at once").toEqual([]);
      const served = new Set(turns.map(({ caller }) => caller));
      const living = running.map(({ log }) => logs.indexOf(log));
      const starved = living.flatMap((process) =>
        Array.from({ length: CALLERS }, (_, caller) => `${process}/${caller}`).filter((caller) => !served.has(caller)),
      );
      expect(starved).toEqual([]);
    } finally {
      await Promise.all(running.map(({ program }) => program.kill()));
      await holdfast.close();
      redis.disconnect();
      await server.stop();
      rmSync(directory, { recursive: true });
    }

    function turnsOf({ path, killedAtMs }: (typeof logs)[number], process: number): Turn[] {
      const turns = new Map<string, Turn>();
      // The last line may be incomplete because the process was killed.
      const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
      for (const { id, isLost, endMs, ...begin } of lines.map((line) => JSON.parse(line))) {
        const turn = turns.get(id);
        // A killed caller uses its permits until it is killed, although they are freed only when its lease ends.
        if (turn === undefined) turns.set(id, { ...begin, caller: `${process}/${begin.caller}`, endMs: killedAtMs });
        else turns.set(id, { ...turn, endMs: isLost ? turn.beginMs : endMs });
      }
      return [...turns.values()];
    }
  },
  FOR_MS + 6 * LONG_MS,
);

test("the checks detect permits that were granted twice", () => {
  const turn = (beginMs: number, endMs: number, permits: number, slots: number[]): Turn => ({
    ...{ beginMs, endMs, permits, slots },
    caller: "",
  });
  expect(mostAtOnce([turn(0, 2, 6, []), turn(1, 3, 5, [])])).toBe(11);
  expect(mostAtOnce([turn(0, 1, 6, []), turn(1, 3, 5, [])])).toBe(6);
  expect(overlaps([turn(0, 2, 1, [3]), turn(1, 3, 2, [2, 3])])).toHaveLength(1);
  expect(overlaps([turn(0, 2, 1, [1]), turn(1, 3, 2, [2, 3]), turn(2, 3, 1, [1])])).toEqual([]);
});

function sharedClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
