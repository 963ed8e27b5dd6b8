/**
 * Two processes of a hundred callers each compete for one mutex while the test kills processes at random.
 *
 * HOLDFAST_SOAK_SECONDS sets the duration (default 4). HOLDFAST_SEED repeats the random choices of a run.
 */
import { randomInt, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { LONG_MS, SOON_MS, sleep } from "../../src/testing/delays.js";

const FOR_MS = Number(env.HOLDFAST_SOAK_SECONDS ?? 4) * 1_000;
const PROCESSES = 2;
const CALLERS = 100;
/** Long enough that a stalled machine rarely loses a lease. The lock of a killed holder stays taken for this long. */
const LEASE_MS = SOON_MS / 2;
const FIELDS = 5;

interface Turn {
  readonly caller: string;
  readonly token: number;
  readonly calledMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}

interface Log {
  readonly path: string;
  readonly index: number;
}

test(
  "callers of two processes hold the mutex in turn, with rising tokens and short waits, despite crashes",
  async () => {
    const seed = Number(env.HOLDFAST_SEED ?? randomInt(1_000_000));
    const random = randomFrom(seed);
    const directory = mkdtempSync(join(tmpdir(), "holdfast-hot-key-"));
    const server = await startRedis();
    const name = randomUUID();
    const logs: Log[] = [];
    const running: { readonly program: Program; readonly log: Log }[] = [];
    const start = async (): Promise<void> => {
      const log = { path: join(directory, `${logs.length}.turns`), index: logs.length };
      const facts = { port: server.port, name, callers: CALLERS, leaseMs: LEASE_MS, waitMs: 2 * LONG_MS };
      const program = startProgram(new URL("./programs/hot-callers.mjs", import.meta.url), { ...facts, log: log.path });
      logs.push(log);
      running.push({ program, log });
      await program.call("start");
    };
    try {
      for (let i = 0; i < PROCESSES; i += 1) await start();
      const endAtMs = performance.now() + FOR_MS;
      while (performance.now() < endAtMs) {
        await sleep(Math.min(1_000 + random() * 1_000, Math.max(0, endAtMs - performance.now())));
        const [victim] = running.splice(Math.floor(random() * running.length), 1);
        await victim?.program.kill();
        await start();
      }
      await sleep(SOON_MS / 2);
      // Rejects with AcquireTimeoutError if a caller of a live process does not get its turn.
      await Promise.all(running.map(({ program }) => program.call("stop")));

      const turns = logs.flatMap(turnsOf).toSorted((a, b) => a.beginMs - b.beginMs);
      const { overlaps, reversals } = judge(turns);
      const longestMs = turns.reduce((longest, { calledMs, beginMs }) => Math.max(longest, beginMs - calledMs), 0);
      console.log(
        `hot key (seed ${seed}): ${turns.length} turns in ${FOR_MS / 1_000} s, ${logs.length - PROCESSES} processes killed, ` +
          `longest wait ${longestMs.toFixed(0)} ms with leases of ${LEASE_MS} ms`,
      );
      expect(turns.length, "it was under load").toBeGreaterThan(1_000);
      expect(overlaps, `seed ${seed}: two at once`).toEqual([]);
      expect(reversals, `seed ${seed}: tokens that do not rise`).toEqual([]);
      // A wait is long only if it spans the leases of killed holders, which nothing ends early.
      expect(longestMs).toBeLessThan(2 * LEASE_MS + LONG_MS);
      const served = new Set(turns.map(({ caller }) => caller));
      const living = running.flatMap(({ log: { index } }) =>
        Array.from({ length: CALLERS }, (_, i) => `${index}/${i}`),
      );
      expect(living.filter((caller) => !served.has(caller))).toEqual([]);
    } finally {
      await Promise.all(running.map(({ program }) => program.kill()));
      await server.stop();
      rmSync(directory, { recursive: true });
    }
  },
  FOR_MS + 6 * LONG_MS,
);

test("the checks detect two holders at once and tokens that fall or repeat", () => {
  const turn = (token: number, beginMs: number, endMs: number): Turn => ({
    ...{ token, beginMs, endMs },
    caller: "",
    calledMs: 0,
  });
  expect(judge([turn(1, 0, 1), turn(2, 1, 2)])).toEqual({ overlaps: [], reversals: [] });
  expect(judge([turn(1, 0, 3), turn(2, 1, 2), turn(3, 2.5, 4)]).overlaps).toHaveLength(2);
  expect(judge([turn(2, 0, 1), turn(2, 1, 2), turn(1, 2, 3)]).reversals).toHaveLength(2);
});

/** @param turns  in the order in which they began */
function judge(turns: readonly Turn[]): { readonly overlaps: readonly Turn[]; readonly reversals: readonly Turn[] } {
  let latestEndMs = -Infinity;
  let highest = -Infinity;
  const overlaps: Turn[] = [];
  const reversals: Turn[] = [];
  for (const turn of turns) {
    if (turn.beginMs < latestEndMs) overlaps.push(turn);
    if (turn.token <= highest) reversals.push(turn);
    latestEndMs = Math.max(latestEndMs, turn.endMs);
    highest = Math.max(highest, turn.token);
  }
  return { overlaps, reversals };
}

function turnsOf({ path, index }: Log): Turn[] {
  const bytes = readFileSync(path);
  const numbers = new Float64Array(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length - (bytes.length % (8 * FIELDS))),
  );
  return Array.from({ length: numbers.length / FIELDS }, (_, i) => {
    const [caller, token = 0, calledMs = 0, beginMs = 0, endMs = 0] = numbers.subarray(i * FIELDS, (i + 1) * FIELDS);
    return { caller: `${index}/${caller}`, token, calledMs, beginMs, endMs };
  });
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
