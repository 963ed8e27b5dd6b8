/** `scheduled` on a real server and with simulated clocks: several instances call a job, and one runs it. */
import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { getEventListeners } from "node:events";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { readHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { type Runtime, systemRuntime } from "../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../holdfast/src/holdfast.js";
import { deferred, until, withLeaseInTime } from "../../holdfast/src/testing/delays.js";
import {
  type RunEndedEvent,
  type RunSkippedEvent,
  type Scheduled,
  type ScheduledOptions,
  scheduled,
  WorkLostError,
} from "../src/index.js";
import { aborted } from "./lead-scene.js";

const HOUR_MS = 3_600_000;
let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  // Long, so that a short freeze of the machine does not count as a server failure.
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client, commandTimeoutMs: 20_000 })) as [
    Holdfast,
    Holdfast,
  ];
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  for (const client of [redis, ...(clients ?? [])]) client?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
});

/** Simulates that `ms` milliseconds have passed since the last run began. */
async function elapse(ms: number): Promise<void> {
  await redis.hincrby(`hf:period-marker:{${name}}`, "read", -ms);
}

function job(
  on: Holdfast,
  work: (lease: Lease) => unknown = () => "value",
  options: Partial<ScheduledOptions> = {},
): Scheduled<unknown> {
  return scheduled(on, name, work, { everyMs: HOUR_MS, ...options });
}

/** Work that runs until `end` is called. */
function held(): { work: (lease: Lease) => Promise<string>; began: Promise<Lease>; end: () => void } {
  const [began, ended] = [deferred<Lease>(), deferred<string>()];
  const work = (lease: Lease): Promise<string> => {
    began.resolve(lease);
    return ended.promise;
  };
  return { work, began: began.promise, end: () => ended.resolve("ended") };
}

describe("instances that call a job", () => {
  test("run it once, and the others receive the holder that ran", async () => {
    const work = vi.fn(() => "value");
    const jobs = [holdfast, other].map((on) => job(on, work));
    const results = await Promise.all(Array.from({ length: 20 }, (_, at) => jobs[at % 2]?.()));
    expect(work).toHaveBeenCalledTimes(1);
    expect(results.filter((result) => result?.outcome === "ran")).toEqual([{ outcome: "ran", value: "value" }]);
    for (const result of results) {
      if (result?.outcome !== "refused") continue;
      expect(result).toMatchObject({ reason: "already-done", holder: { pid: process.pid } });
      expect(result.leaseLeftMs).toBeGreaterThan(0.8 * HOUR_MS);
    }
  });

  test("do not repeat a job that finished quickly if they are late", async () => {
    expect(await job(holdfast)()).toMatchObject({ outcome: "ran" });
    await elapse(0.4 * HOUR_MS);
    expect(await job(other)()).toMatchObject({ outcome: "refused", reason: "already-done" });
    await elapse(0.4 * HOUR_MS);
    expect(await job(other)()).toMatchObject({ outcome: "refused", reason: "already-done" });
    await elapse(0.1 * HOUR_MS);
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
  });

  test("share the period marker with `holdfast run --once-per`", async () => {
    const { inspectPeriod } = await import("holdfast/period-marker");
    await job(holdfast)();
    await expect(inspectPeriod(other, name, { every: HOUR_MS })).resolves.toMatchObject({
      lastRun: { pid: process.pid, exitCode: 0 },
    });
  });

  test("record the time of the call, not the end of its jitter", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfastOn({ ...systemRuntime, random: () => 0.999 }, { redis: client });
    await job(local, undefined, { jitterMaxMs: 400 })();
    const [read, started] = await redis.hmget(`hf:period-marker:{${name}}`, "read", "started");
    expect(Number(started) - Number(read)).toBeGreaterThanOrEqual(399);
    await local.close();
    client.disconnect();
  });

  test("are refused if another instance runs during their jitter", async () => {
    const waits = deferred<() => void>();
    const jitterMaxMs = 600_000;
    const runtime: Runtime = {
      ...systemRuntime,
      random: () => 0.5,
      startTimer: (callback, delayMs, keepAlive) => {
        if (delayMs === jitterMaxMs / 2) waits.resolve(callback);
        return systemRuntime.startTimer(callback, delayMs, keepAlive && delayMs !== jitterMaxMs / 2);
      },
    };
    const client = new Redis({ port: server.port });
    const local = createHoldfastOn(runtime, { redis: client, commandTimeoutMs: 20_000 });
    const late = vi.fn();
    const result = job(local, late, { jitterMaxMs })();
    const waited = await waits.promise;
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
    waited();
    expect(await result).toMatchObject({ outcome: "refused", reason: "already-done" });
    expect(late).not.toHaveBeenCalled();
    await local.close();
    client.disconnect();
  });

  test("run each of 100 ticks once, even 20 of them with different clocks", async () => {
    const clock = { atUs: 1_795_000_000_000_000, nowUs: () => clock.atUs };
    const keyspace = new Keyspace({ clock });
    const everyMs = 2_000;
    const runs: number[] = [];
    const instances = Array.from({ length: 20 }, (_, at) => {
      const on = createHoldfast({ store: embedded({ keyspace }) });
      const call = scheduled(on, name, () => void runs.push(clock.atUs), { everyMs });
      return { on, call, offsetMs: Math.round((at / 19 - 0.5) * 600) };
    });
    const startUs = clock.atUs;
    let ran = 0;
    for (let tick = 0; tick < 100; tick += 1) {
      // The first instance and the set of callers differ from tick to tick.
      for (const { call, offsetMs } of instances) {
        const isLast =
          runs.length > 0 && (runs.at(-1) as number) - startUs === 1_000 * ((tick - 1) * everyMs + offsetMs);
        if (!isLast && (tick * 7 + offsetMs) % 3 === 0) continue;
        clock.atUs = startUs + 1_000 * (tick * everyMs + offsetMs);
        if ((await call()).outcome === "ran") ran += 1;
      }
      expect(runs.length, `tick ${tick}`).toBe(tick + 1);
    }
    expect(ran).toBe(100);
    await Promise.all(instances.map(({ on }) => on.close()));
  });
});

describe("a run in progress", () => {
  test("refuses the next tick as held, with its holder, and its own tick as already done", async () => {
    const running = held();
    const first = job(holdfast, running.work, { label: "monthly report" })();
    const lease = await running.began;
    expect(await job(other)()).toMatchObject({ reason: "already-done", label: "monthly report" });
    await elapse(HOUR_MS);
    // The holder has a period marker, so the call is refused immediately and does not wait for a lease.
    const refused = await job(other, undefined, { leaseMs: 60_000 })();
    expect(refused).toMatchObject({ outcome: "refused", reason: "held", label: "monthly report" });
    expect(refused).toMatchObject({ holder: { owner: lease.owner, token: lease.token, pid: process.pid } });
    running.end();
    expect(await first).toEqual({ outcome: "ran", value: "ended" });
    // The refused call is not repeated, but the next call may run.
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
  });

  test('may overlap with the next one with `overlap: "allow"`, each with its own lease', async () => {
    const running = held();
    const options: Partial<ScheduledOptions> = { overlap: "allow" };
    const first = job(holdfast, running.work, options)();
    const lease = await running.began;
    expect(await job(other, undefined, options)()).toMatchObject({ reason: "already-done" });
    await elapse(HOUR_MS);
    const second = await job(other, ({ token }) => token, options)();
    expect(second).toMatchObject({ outcome: "ran" });
    expect((second as { value: number }).value).toBeGreaterThan(lease.token);
    lease.assertHeld();
    running.end();
    await first;
  });

  test("is renewed until it ends", () =>
    withLeaseInTime(async (leaseMs) => {
      name = randomUUID();
      const running = held();
      const first = job(holdfast, running.work, { leaseMs })();
      const lease = await running.began;
      await elapse(HOUR_MS);
      const start = Date.now();
      await until(() => Date.now() - start > 3 * leaseMs, "three leases");
      expect(await job(other, undefined, { leaseMs })()).toMatchObject({ reason: "held" });
      lease.assertHeld();
      running.end();
      expect(await first).toMatchObject({ outcome: "ran" });
    }));

  test.each([
    [1_000, 1_000],
    [10_000, 5_000],
    [HOUR_MS, 15_000],
  ])("with a period of %d ms has a lease of %d ms by default", async (everyMs, leaseMs) => {
    // The owner id contains the lease duration.
    const result = await job(holdfast, ({ owner }) => Number(owner.split("/")[2]), { everyMs })();
    expect(result).toEqual({ outcome: "ran", value: leaseMs });
  });

  test("is aborted after `maxHoldMs`, and the next one can run", async () => {
    const first = job(holdfast, ({ signal }) => aborted(signal), { maxHoldMs: 100 })();
    expect(await first).toMatchObject({ outcome: "ran", value: { reason: "max-hold" } });
    await elapse(HOUR_MS);
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
  });
});

describe("`minHoldMs`", () => {
  const lock = (): Promise<Lease | null> => other.mutex(name).tryAcquire();

  test("keeps the lock after the work has ended, and then frees it", async () => {
    const beganAtMs = performance.now();
    expect(await job(holdfast, undefined, { minHoldMs: 2_000 })()).toMatchObject({ outcome: "ran" });
    const taken = await lock();
    // If the machine froze, the request may have come too late.
    if (performance.now() < beganAtMs + 1_500) expect(taken).toBeNull();
    await taken?.release();
    // Without `minHoldMs` handling, the lease would last 15 s.
    const lease = await other.mutex(name).acquire({ waitMs: 10_000 });
    await lease.release();
  });

  test("does not block the next tick if it comes slightly early", async () => {
    await job(holdfast, undefined, { minHoldMs: 1_000 })();
    await elapse(HOUR_MS);
    expect(await job(other)()).toEqual({ outcome: "ran", value: "value" });
  });

  test("longer than the lease needs no renewal and outlasts a close", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client });
    await job(local, undefined, { minHoldMs: 60_000, leaseMs: 1_000 })();
    await local.close();
    client.disconnect();
    expect(await lock()).toBeNull();
    expect(await redis.pttl(`hf:mutex:{${name}}`)).toBeGreaterThan(30_000);
  });

  test("shorter than the lease also outlasts a close", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client });
    await job(local, undefined, { minHoldMs: 5_000 })();
    await local.close();
    client.disconnect();
    expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(1);
  });
});

describe("work", () => {
  test("that fails has its error rethrown, and its tick is not repeated", async () => {
    const error = new RangeError("no such report");
    await expect(job(holdfast, () => Promise.reject(error))()).rejects.toBe(error);
    const thrower = (): never => {
      throw error;
    };
    await elapse(HOUR_MS);
    await expect(job(holdfast, thrower)()).rejects.toBe(error);
    expect(await job(other)()).toMatchObject({ reason: "already-done" });
    expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0);
  });

  test("that loses its lease reports the loss with its value, unless it throws its own error", async () => {
    const running = held();
    const first = job(holdfast, running.work)();
    const lease = await running.began;
    const { signal } = lease;
    await other.mutex(name).forceRelease({ owner: lease.owner });
    await until(() => signal.aborted, "word of the loss");
    running.end();
    const lost = await first.catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(WorkLostError);
    expect(lost).toMatchObject({ value: "ended", reason: "force-released", token: lease.token });

    await elapse(HOUR_MS);
    const error = new Error("its own");
    const failing = job(holdfast, async ({ owner }) => {
      await other.mutex(name).forceRelease({ owner });
      throw error;
    });
    await expect(failing()).rejects.toBe(error);
    expect(failing.counts.ended).toMatchObject({ failed: 0, lost: 1 });
  });

  test("that ends when its signal aborts counts as lost, and the history names the reason", async () => {
    const nightly = job(
      holdfast,
      async ({ owner, signal }) => {
        await other.mutex(name).forceRelease({ owner });
        await aborted(signal);
        signal.throwIfAborted();
      },
      { history: true },
    );
    await expect(nightly()).rejects.toMatchObject({ reason: "force-released" });
    expect(nightly.counts.ended).toEqual({ succeeded: 0, failed: 0, lost: 1, unreported: 0 });
    const entries = await readHistory(holdfast, { name, outcome: ["lost"] });
    expect(entries).toMatchObject([{ reason: "force-released" }]);
  });

  test("that `maxHoldMs` ends counts as failed, because its lease was not lost", async () => {
    const nightly = job(
      holdfast,
      async ({ signal }) => {
        await aborted(signal);
        signal.throwIfAborted();
      },
      { maxHoldMs: 100 },
    );
    await expect(nightly()).rejects.toMatchObject({ reason: "max-hold" });
    expect(nightly.counts.ended).toMatchObject({ failed: 1, lost: 0 });
  });
});

describe("a call that cannot run immediately", () => {
  test("is refused as paused with the label of the pause", async () => {
    await holdfast.pause(name, { by: "ana", label: "db maintenance" });
    expect(await job(other)()).toMatchObject({ reason: "paused", label: "db maintenance" });
    await holdfast.resume(name, { by: "ana" });
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
  });

  test("is refused as unavailable if the server is down and as grace during its grace period", async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const client = new Redis({ port: own.port, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, failoverGrace: "strict", commandTimeoutMs: 500 });
    const call = job(local);
    expect(await call()).toMatchObject({ reason: "grace", leaseLeftMs: expect.any(Number) });
    await own.stop();
    const refused = await call();
    expect(refused).toMatchObject({ outcome: "refused", reason: "unavailable", error: { name: "StoreError" } });
    await local.close();
    client.disconnect();
    await expect(call()).rejects.toThrow("closed");
  });

  test("waits for a holder that died before it wrote the marker, and then runs", async () => {
    await other.mutex(name).acquire({ leaseMs: 500, renew: false });
    expect(await job(holdfast)()).toMatchObject({ outcome: "ran" });
  });

  test("waits one lease for a holder without a marker, and is then refused as held", async () => {
    const lease = await other.mutex(name).acquire({ label: "deploy" });
    expect(await job(holdfast, undefined, { leaseMs: 200 })()).toMatchObject({ reason: "held", label: "deploy" });
    await lease.release();
    expect(await job(holdfast)()).toMatchObject({ outcome: "ran" });
  });
});

describe("every outcome is reported", () => {
  test("on diagnostics channels and in counters per reason", async () => {
    const events: [string, unknown][] = [];
    const listeners = ["started", "ended", "skipped"].map((word) => {
      const listener = (message: unknown): void => {
        if ((message as { lockName: string }).lockName === name) events.push([word, message]);
      };
      subscribe(`holdfast:run:${word}`, listener);
      return () => unsubscribe(`holdfast:run:${word}`, listener);
    });
    onTestFinished(() => {
      for (const stop of listeners) stop();
    });
    const call = scheduled(holdfast, name, ({ token }) => token, { everyMs: HOUR_MS });
    const first = await call();
    await call();
    await elapse(HOUR_MS);
    const error = new TypeError("no");
    const failing = scheduled(holdfast, name, () => Promise.reject(error), { everyMs: HOUR_MS });
    await expect(failing()).rejects.toBe(error);
    const token = (first as { value: number }).value;
    const about = { kind: "mutex", lockName: name, clientId: expect.any(String) };
    const tick = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(events.map(([word]) => word)).toEqual(["started", "ended", "skipped", "started", "ended"]);
    expect(events[0]?.[1]).toEqual({ ...about, tick, token, owner: expect.any(String) });
    expect(events[1]?.[1]).toMatchObject({
      ...about,
      tick,
      token,
      outcome: "succeeded",
    } satisfies Partial<RunEndedEvent>);
    const skip: Partial<RunSkippedEvent> = { reason: "already-done" };
    expect(events[2]?.[1]).toMatchObject({ ...about, tick, ...skip, refusal: { outcome: "refused" } });
    expect(events[4]?.[1]).toMatchObject({ outcome: "failed", error });
    expect(call.counts).toMatchObject({ started: 1, ended: { succeeded: 1 }, skipped: { "already-done": 1, held: 0 } });
    expect(failing.counts).toMatchObject({ started: 1, ended: { failed: 1 } });
  });

  test("in the history, with the error name or the reason, except for ticks that another instance ran", async () => {
    const history = true;
    await job(holdfast, ({ token }) => token, { history })();
    await job(other, undefined, { history })();
    await elapse(HOUR_MS);
    await job(other, () => Promise.reject(new TypeError("no")), { history })().catch(() => {});
    await elapse(HOUR_MS);
    await holdfast.pause(name, { by: "ana", label: "db maintenance" });
    await job(other, undefined, { history })();
    await holdfast.resume(name, { by: "ana" });
    await vi.waitFor(async () => {
      const entries = await readHistory(holdfast, { name });
      expect(entries).toMatchObject([
        { outcome: "skipped", reason: "paused", by: "ana", label: "db maintenance", tick: expect.any(String) },
        { outcome: "released", reason: "failed: TypeError", errorName: "TypeError", pid: process.pid },
        { outcome: "released", kind: "mutex", token: expect.any(Number), heldMs: expect.any(Number) },
      ]);
      expect(entries[2]?.grantedAtMs).toBeLessThanOrEqual(entries[2]?.atMs as number);
      expect(Date.parse(entries[2]?.tick as string)).toBeLessThanOrEqual(entries[2]?.grantedAtMs as number);
    });
  });
});

test.each([
  [{ everyMs: 999 }, "everyMs"],
  [{ everyMs: "day" }, "everyMs"],
  [{ everyMs: undefined }, "everyMs"],
  [{ overlap: "queue" }, "overlap"],
  [{ minHoldMs: -1 }, "minHoldMs"],
  [{ minHoldMs: 200, maxHoldMs: 100 }, "minHoldMs"],
  [{ maxHoldMs: 99 }, "maxHoldMs"],
  [{ jitterMaxMs: HOUR_MS }, "jitterMaxMs"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ history: "yes" }, "history"],
  [{ label: 5 }, "label"],
  [{ signal: 5 }, "signal"],
  [{ every: 5 }, "every"],
])("the error for an invalid option names the option: %o", (options, option) => {
  expect(() => job(holdfast, undefined, options as object)).toThrow(option);
  expect(() => scheduled(holdfast, "", () => {}, { everyMs: HOUR_MS })).toThrow("name must be");
  expect(() => scheduled(holdfast, name, undefined as never, { everyMs: HOUR_MS })).toThrow("work must be a function");
  expect(() => scheduled({} as Holdfast, name, () => {}, { everyMs: HOUR_MS })).toThrow("holdfast must be");
});

describe("a caller that gives up", () => {
  test.each(["before it asks", "in its jitter", "while it waits", "while it runs"])("%s", async (when) => {
    const controller = new AbortController();
    const { signal } = controller;
    const why = new Error("shutting down");
    const running = held();
    const wish = { signal, jitterMaxMs: { "in its jitter": HOUR_MS / 2, "while it runs": 5 }[when] ?? 0 };
    const inTheWay = when === "while it waits" ? await other.mutex(name).acquire() : undefined;
    if (when === "before it asks") controller.abort(why);
    const call = job(holdfast, running.work, wish)();
    call.catch(() => {});
    if (when === "in its jitter" || when === "while it waits") {
      await until(() => getEventListeners(signal, "abort").length > 0, "a pause");
    }
    if (when === "while it runs") {
      await running.began;
      expect(getEventListeners(signal, "abort")).toEqual([]);
    }
    controller.abort(why);
    running.end();
    if (when === "while it runs") expect(await call).toMatchObject({ outcome: "ran", value: "ended" });
    else await expect(call).rejects.toBe(why);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await inTheWay?.release();
    await vi.waitFor(async () => expect(await redis.exists(`hf:mutex:{${name}}`)).toBe(0), { timeout: 15_000 });
    if (when === "while it runs") return;
    // The tick is still free.
    expect(await job(other)()).toMatchObject({ outcome: "ran" });
  });
});

/** A Holdfast whose jitter is always half of the maximum. `isWaiting`: whether its timer keeps the process alive. */
function jittering(jitterMaxMs: number): {
  local: Holdfast;
  waits: Promise<void>;
  isWaiting: () => boolean;
  end: () => void;
} {
  const waits = deferred<void>();
  let running = 0;
  const runtime: Runtime = {
    ...systemRuntime,
    random: () => 0.5,
    startTimer: (callback, delayMs, keepAlive) => {
      const timer = systemRuntime.startTimer(callback, delayMs, keepAlive);
      if (delayMs !== jitterMaxMs / 2 || !keepAlive) return timer;
      running += 1;
      waits.resolve();
      return {
        cancel() {
          running -= 1;
          timer.cancel();
        },
      };
    },
  };
  const client = new Redis({ port: server.port });
  const local = createHoldfastOn(runtime, { redis: client, commandTimeoutMs: 20_000 });
  return { local, waits: waits.promise, isWaiting: () => running > 0, end: () => client.disconnect() };
}

describe("nothing is left", () => {
  test.each([undefined, 60_000])(
    "of a call in its jitter when its Holdfast closes (graceMs: %s): it ends immediately, without timers",
    async (graceMs) => {
      const jitterMaxMs = HOUR_MS / 2;
      const { local, waits, isWaiting, end } = jittering(jitterMaxMs);
      onTestFinished(end);
      const work = vi.fn();
      const call = job(local, work, { jitterMaxMs })();
      call.catch(() => {});
      await waits;
      expect(isWaiting()).toBe(true);
      await local.close(graceMs === undefined ? {} : { graceMs });
      expect(isWaiting()).toBe(false);
      await expect(call).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
      expect(work).not.toHaveBeenCalled();
      expect(await job(other)()).toMatchObject({ outcome: "ran" });
    },
  );

  test("except keys that expire", async () => {
    await job(holdfast, undefined, { history: true })();
    await elapse(HOUR_MS);
    expect(await job(holdfast, undefined, { overlap: "allow" })()).toMatchObject({ outcome: "ran" });
    const keys = (await redis.keys("hf:*")).filter((key) => key.includes(name));
    expect(keys.length).toBeGreaterThanOrEqual(3);
    for (const key of keys) expect(await redis.pttl(key), key).toBeGreaterThan(0);
  });
});

// Processes start slowly on a busy machine.
describe("processes", { timeout: 60_000 }, () => {
  const programs: Program[] = [];
  function program(): Program {
    const started = startProgram(new URL("./programs/scheduled-runner.mjs", import.meta.url), { port: server.port });
    programs.push(started);
    return started;
  }
  afterEach(async () => {
    await Promise.all(programs.splice(0).map((each) => each.kill()));
  });

  test("killed during a run are not replaced in that tick, and the history entry is expired", async () => {
    const dying = program();
    const began = dying.heard("began");
    const options = { everyMs: HOUR_MS, leaseMs: 1_000, history: true };
    const killed = dying.call("call", { name, workMs: 60_000, options }).catch(() => {});
    await began;
    await vi.waitFor(async () => expect(await readHistory(holdfast, { name })).toHaveLength(1), { timeout: 15_000 });
    await dying.kill();
    await killed;
    expect(await job(holdfast)()).toMatchObject({ reason: "already-done" });
    await until(async () => (await redis.exists(`hf:mutex:{${name}}`)) === 0, "the end of its lease");
    expect(await job(holdfast)()).toMatchObject({ reason: "already-done" });
    const [entry] = await readHistory(holdfast, { name });
    expect(entry).toMatchObject({ outcome: "ending", pid: dying.pid });
    // Its record stays for a while, as if it could still write down the end. This is the minute without a sign of life.
    await redis.del(`hf:client:${entry?.owner?.split("/")[0]}`);
    // The history counts the lease from when its grant was recorded, which is a moment later on a busy machine.
    const expired = async (): Promise<void> =>
      expect(await readHistory(holdfast, { name })).toMatchObject([{ outcome: "expired", pid: dying.pid }]);
    await vi.waitFor(expired, { timeout: 15_000 });
    await elapse(HOUR_MS);
    expect(await job(holdfast)()).toMatchObject({ outcome: "ran" });
    expect(await redis.llen(`${name}:runs`)).toBe(1);
  });

  test("frozen beyond their lease get a WorkLostError with their value", async () => {
    const late = program();
    const began = late.heard("began");
    const options = { everyMs: HOUR_MS, leaseMs: 1_500 };
    const answer = late.call("call", { name, workMs: 4_000, options });
    await began;
    late.freeze();
    await until(async () => (await redis.exists(`hf:mutex:{${name}}`)) === 0, "the end of its lease");
    await elapse(HOUR_MS);
    expect(await job(holdfast)()).toMatchObject({ outcome: "ran" });
    late.resume();
    expect(await answer).toEqual({ error: "WorkLostError", value: "done" });
  });

  test("with 50 concurrent callers run each of 20 jobs once", async () => {
    const names = Array.from({ length: 20 }, (_, at) => `${name}:${at}`);
    const all = Array.from({ length: 5 }, program);
    const input = { names, callers: 10, everyMs: HOUR_MS };
    const results = (await Promise.all(all.map((each) => each.call<string[]>("many", input)))).flat();
    expect(results).toHaveLength(1_000);
    expect(results.filter((result) => result === "ran")).toHaveLength(20);
    expect(new Set(results)).toEqual(new Set(["ran", "already-done"]));
    expect(new Set(await redis.mget(names.map((each) => `${each}:runs`)))).toEqual(new Set(["1"]));
  });

  test("that have closed their Holdfast exit on their own", async () => {
    const ending = program();
    expect(await ending.call("finish", { name })).toBe("ran");
    expect(await ending.ended).toEqual({ code: 0, signal: null });
  });
});
