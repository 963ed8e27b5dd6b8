/** At most one start per period, by the server's clock, among all clients that hold the lock in turn. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { embedded, Keyspace } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast, type Lease, LeaseLostError, UnsupportedError } from "../../src/index.js";
import {
  lastRunOf,
  type PeriodOptions,
  type PeriodStart,
  serverTimeMs,
  startOfPeriod,
} from "../../src/period-marker/index.js";
import { divisionOf, opensAtMs } from "../../src/period-marker/period.js";
import { LONG_MS } from "../../src/testing/delays.js";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const open: Holdfast[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((holdfast) => holdfast.close()));
});
function made(holdfast: Holdfast): Holdfast {
  open.push(holdfast);
  return holdfast;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A Wednesday, at midnight. */
const MIDNIGHT = Date.UTC(2026, 10, 18);

describe.each([
  ["embedded", () => made(createHoldfast({ store: embedded({ keyPrefix: "app:" }), clientName: "cron" }))],
  ["Redis", () => made(createHoldfast({ redis, prefix: randomUUID(), clientName: "cron" }))],
])("on %s", (_, make) => {
  /** Starts the period as a client that read the clock at `readAtMs` and then waited for the lock. */
  async function attempt(
    holdfast: Holdfast,
    options: PeriodOptions,
    exitCode?: number,
    acquire: () => Promise<Lease> = () => holdfast.mutex("job").acquire({ label: "report", fairness: "strict" }),
  ): Promise<PeriodStart["outcome"]> {
    const lease = await acquire();
    const start = await startOfPeriod(holdfast, lease, options);
    if (start.outcome === "started" && exitCode !== undefined) expect(await start.end(exitCode)).toBe(true);
    await lease.release();
    return start.outcome;
  }

  test("a rolling period stays closed for nine tenths of its length", async () => {
    const holdfast = make();
    const at = (readAtMs: number): Promise<string> => attempt(holdfast, { every: DAY, readAtMs });
    expect(await at(MIDNIGHT)).toBe("started");
    expect(await at(MIDNIGHT + 1)).toBe("already");
    // A client that waited for the lock has read the clock before the start.
    expect(await at(MIDNIGHT - 5_000)).toBe("already");
    expect(await at(MIDNIGHT + 0.9 * DAY - 1)).toBe("already");
    expect(await at(MIDNIGHT + 0.9 * DAY)).toBe("started");
    // A start that comes a second earlier each day skips no day.
    expect(await at(MIDNIGHT + 1.9 * DAY - 1_000)).toBe("started");
  });

  test("a calendar period opens half a minute before its boundary", async () => {
    const holdfast = make();
    const at = (readAtMs: number): Promise<string> => attempt(holdfast, { every: "day", readAtMs });
    expect(await at(MIDNIGHT - 15_000)).toBe("started");
    expect(await at(MIDNIGHT + 10_000)).toBe("already");
    expect(await at(MIDNIGHT + DAY - 30_001)).toBe("already");
    expect(await at(MIDNIGHT + DAY - 30_000)).toBe("started");
    expect(await attempt(holdfast, { every: "hour", readAtMs: MIDNIGHT + DAY + HOUR })).toBe("started");
  });

  test("a refused client learns the last run, its result, and when the next run may start", async () => {
    const holdfast = make();
    expect(await lastRunOf(holdfast, "job")).toBeUndefined();
    const lease = await holdfast.mutex("job").acquire({ label: "report" });
    const start = await startOfPeriod(holdfast, lease, { every: "day", readAtMs: MIDNIGHT });
    if (start.outcome !== "started") throw new Error("nobody had started");
    const run = { owner: lease.owner, token: lease.token, host: hostname(), pid: process.pid, clientName: "cron" };
    expect(await lastRunOf(holdfast, "job")).toMatchObject({
      ...run,
      label: "report",
      endedAtMs: undefined,
      exitCode: undefined,
    });
    await start.end(3);
    await lease.release();
    const other = await holdfast.mutex("job").acquire();
    const refused = await startOfPeriod(holdfast, other, { every: "day", readAtMs: MIDNIGHT + HOUR });
    expect(refused).toMatchObject({
      outcome: "already",
      lastRun: { ...run, readAtMs: MIDNIGHT, exitCode: 3 },
      opensAtMs: MIDNIGHT + DAY - 30_000,
    });
    const last = await lastRunOf(holdfast, "job");
    expect(Math.abs((last?.startedAtMs ?? 0) - Date.now())).toBeLessThan(LONG_MS);
    expect(last?.endedAtMs).toBeGreaterThanOrEqual(last?.startedAtMs ?? Infinity);
  });

  test("with untilSuccess, a failed or crashed run leaves the period open", async () => {
    const holdfast = make();
    const at = (after: number, exitCode?: number): Promise<string> =>
      attempt(holdfast, { every: "day", readAtMs: MIDNIGHT + after, untilSuccess: true }, exitCode);
    expect(await at(0)).toBe("started");
    expect(await at(HOUR, 1)).toBe("started");
    expect(await at(2 * HOUR, 0)).toBe("started");
    expect(await at(3 * HOUR, 0)).toBe("already");
    // Without untilSuccess, the last start closes the period.
    expect(await attempt(holdfast, { every: "day", readAtMs: MIDNIGHT + 4 * HOUR })).toBe("already");
    expect(await at(DAY, 7)).toBe("started");
    expect(await at(DAY + HOUR)).toBe("started");
  });

  test("a repeated start with the same lease succeeds, and a superseded run cannot record its end", async () => {
    const holdfast = make();
    const lease = await holdfast.mutex("job").acquire();
    const options = { every: HOUR, readAtMs: MIDNIGHT };
    const first = await startOfPeriod(holdfast, lease, options);
    expect((await startOfPeriod(holdfast, lease, options)).outcome).toBe("started");
    if (first.outcome !== "started") throw new Error("nobody had started");
    expect(await first.end(0)).toBe(true);
    const ended = await lastRunOf(holdfast, "job");
    // A repeated end succeeds and does not change the record.
    expect(await first.end(3)).toBe(true);
    expect(await lastRunOf(holdfast, "job")).toEqual(ended);
    await lease.release();
    expect(await attempt(holdfast, { every: HOUR, readAtMs: MIDNIGHT + HOUR })).toBe("started");
    expect(await first.end(1)).toBe(false);
    expect((await lastRunOf(holdfast, "job"))?.exitCode).toBeUndefined();
  });

  test("a client that has lost its lease cannot start a period", async () => {
    const holdfast = make();
    const lease = await holdfast.mutex("job").acquire();
    await holdfast.mutex("job").forceRelease({ owner: lease.owner });
    await expect(startOfPeriod(holdfast, lease, { every: HOUR, readAtMs: MIDNIGHT })).rejects.toThrow(LeaseLostError);
    expect(await lastRunOf(holdfast, "job")).toBeUndefined();
  });

  test("permits, read-write locks, reentrant mutexes and elections can start a period; multi-locks cannot", async () => {
    const holdfast = make();
    const once = { every: HOUR, readAtMs: MIDNIGHT };
    const leases: (() => Promise<Lease>)[] = [
      () => holdfast.semaphore("s", { permits: 2 }).acquire(),
      () => holdfast.readWriteLock("r").read.acquire(),
      () => holdfast.readWriteLock("w").write.acquire(),
      () => holdfast.reentrantMutex("m").acquire(),
      () => holdfast.election("e").acquire(),
    ];
    for (const acquire of leases) {
      expect(await attempt(holdfast, once, 0, acquire)).toBe("started");
      expect(await attempt(holdfast, once, 0, acquire)).toBe("already");
    }
    const semaphore = holdfast.semaphore("gone", { permits: 1 });
    const lost = await semaphore.acquire();
    await semaphore.forceRelease({ owner: lost.owner });
    await expect(startOfPeriod(holdfast, lost, once)).rejects.toThrow(LeaseLostError);
    const several = await holdfast.multiLock(["a", "b"]).acquire();
    await expect(startOfPeriod(holdfast, several, once)).rejects.toThrow(UnsupportedError);
  });

  test("exactly one of many successive holders starts the period", async () => {
    const holdfast = make();
    const readAtMs = await serverTimeMs(holdfast, "job");
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => attempt(holdfast, { every: 60_000, readAtMs: readAtMs + i })),
    );
    expect(outcomes.filter((outcome) => outcome === "started")).toHaveLength(1);
  });

  test("invalid options are refused with an error that names them", async () => {
    const holdfast = make();
    const lease = await holdfast.mutex("job").acquire();
    const wrong = (options: object): Promise<unknown> => startOfPeriod(holdfast, lease, options as PeriodOptions);
    await expect(wrong({ every: "month", readAtMs: 0 })).rejects.toThrow(/every must be/);
    await expect(wrong({ every: 10, readAtMs: 0 })).rejects.toThrow(/every/);
    await expect(wrong({ every: "day" })).rejects.toThrow(/readAtMs/);
    await expect(wrong({ every: "day", readAtMs: 0, untilSuccess: 1 })).rejects.toThrow(/untilSuccess/);
    await expect(startOfPeriod(holdfast, {} as Lease, { every: "day", readAtMs: 0 })).rejects.toThrow(/lease must be/);
  });
});

test("the time comes from the server, and the record of a run expires", async () => {
  const keyspace = new Keyspace({ clock: { nowUs: () => 1_000_000_000_000 } });
  const holdfast = made(createHoldfast({ store: embedded({ keyspace }) }));
  expect(await serverTimeMs(holdfast, "job")).toBe(1_000_000_000);
  const lease = await holdfast.mutex("job").acquire();
  await startOfPeriod(holdfast, lease, { every: DAY, readAtMs: 1_000_000_000 });
  expect(keyspace.pttl("hf:period-marker:{job}")).toBe(9 * DAY);
});

test("weeks begin on Monday", () => {
  const week = divisionOf("week");
  expect(opensAtMs(week, MIDNIGHT)).toBe(Date.UTC(2026, 10, 23) - 30_000);
  expect(opensAtMs(week, Date.UTC(2026, 10, 22, 23, 59, 45))).toBe(Date.UTC(2026, 10, 30) - 30_000);
  expect(opensAtMs(divisionOf(DAY), MIDNIGHT)).toBe(MIDNIGHT + 0.9 * DAY);
});

test("a later run with a shorter period does not shorten the TTL of the record", async () => {
  const keyspace = new Keyspace({ clock: { nowUs: () => 1_000_000_000_000 } });
  const holdfast = made(createHoldfast({ store: embedded({ keyspace }) }));
  for (const [every, readAtMs] of [
    [30 * DAY, 1_000_000_000],
    [HOUR, 1_000_000_000 + HOUR],
  ] as const) {
    const lease = await holdfast.mutex("job").acquire();
    expect((await startOfPeriod(holdfast, lease, { every, readAtMs })).outcome).toBe("started");
    await lease.release();
  }
  expect(keyspace.pttl("hf:period-marker:{job}")).toBe(67 * DAY);
});

test("a record on one of several servers refuses a start, which writes nothing to the others", async () => {
  const keyspaces = [1, 2, 3].map(() => new Keyspace());
  const [first] = keyspaces as [Keyspace];
  const one = made(createHoldfast({ store: embedded({ keyspace: first }) }));
  const all = made(createHoldfast({ redlock: keyspaces.map((keyspace) => embedded({ keyspace })) }));
  const attempt = async (holdfast: Holdfast, lease: Lease, readAtMs: number): Promise<string> => {
    const { outcome } = await startOfPeriod(holdfast, lease, { every: DAY, readAtMs });
    await lease.release();
    return outcome;
  };
  const noted = (): boolean[] => keyspaces.map((keyspace) => keyspace.pttl("hf:period-marker:{job}") > 0);
  expect(await attempt(one, await one.mutex("job").acquire(), MIDNIGHT)).toBe("started");
  expect(await attempt(all, await all.redlock("job").acquire(), MIDNIGHT + HOUR)).toBe("already");
  expect(noted()).toEqual([true, false, false]);
  expect(await attempt(all, await all.redlock("job").acquire(), MIDNIGHT + DAY)).toBe("started");
  expect(noted().filter((is) => is).length).toBeGreaterThanOrEqual(2);
});
