/** The run coordinator for node-cron, with the real node-cron on a real server. */
import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { embedded } from "@holdfast/embedded";
import type { RunSkippedEvent } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { readHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { type RunCoordinator, type ScheduledTask, schedule, setRunCoordinator, type TaskContext } from "node-cron";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { mutexAcquire } from "../../holdfast/src/generated/scripts.js";
import { until } from "../../holdfast/src/testing/delays.js";
import { runCoordinator } from "../src/index.js";

const TTL_MS = 30_000;
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let other: Holdfast;
let name: string;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  [holdfast, other] = [createHoldfast({ redis }), createHoldfast({ redis })];
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
  key = `feed:${new Date().toISOString()}`;
});

/** Collects the skip events of the test. */
function skips(): RunSkippedEvent[] {
  const seen: RunSkippedEvent[] = [];
  const listener = (message: unknown): void => {
    const event = message as RunSkippedEvent;
    if (event.lockName === name) seen.push(event);
  };
  subscribe("holdfast:run:skipped", listener);
  onTestFinished(() => void unsubscribe("holdfast:run:skipped", listener));
  return seen;
}

describe("a key", () => {
  test("is granted to the first caller only, even after that run has ended", async () => {
    const seen = skips();
    const coordinators = [holdfast, other].map((on) => runCoordinator(on, { name }));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => coordinators[at % 2]?.shouldRun(key, TTL_MS)),
    );
    expect(answers.filter(Boolean)).toHaveLength(1);
    await Promise.all(coordinators.map((each) => each.onComplete(key)));
    for (const each of coordinators) expect(await each.shouldRun(key, TTL_MS)).toBe(false);
    expect(seen).toHaveLength(21);
    for (const skip of seen) {
      expect(skip).toMatchObject({ tick: key, reason: "already-done", refusal: { holder: { pid: process.pid } } });
    }
    expect(await coordinators[0]?.shouldRun(`${key} and later`, TTL_MS)).toBe(true);
    const [one, two] = coordinators.map(({ counts }) => counts);
    expect((one?.started ?? 0) + (two?.started ?? 0)).toBe(2);
    expect((one?.skipped["already-done"] ?? 0) + (two?.skipped["already-done"] ?? 0)).toBe(21);
    await coordinators[0]?.onComplete(`${key} and later`);
  });

  test("stays taken until its TTL ends, even after a close", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client });
    const coordinator = runCoordinator(local, { name });
    expect(await coordinator.shouldRun(key, 60_000)).toBe(true);
    expect(await coordinator.shouldRun(`${key} brief`, 200)).toBe(true);
    await local.close();
    client.disconnect();
    const again = runCoordinator(other, { name });
    expect(await again.shouldRun(key, TTL_MS)).toBe(false);
    expect(await redis.pttl(`hf:mutex:{${name}/${key}}`)).toBeGreaterThan(30_000);
    await vi.waitFor(async () => expect(await again.shouldRun(`${key} brief`, TTL_MS)).toBe(true), { timeout: 15_000 });
    await again.onComplete(`${key} brief`);
  });

  test("that is granted again after its TTL leaves no holder of the earlier run", async () => {
    const coordinator = runCoordinator(holdfast, { name });
    expect(await coordinator.shouldRun(key, 1_000)).toBe(true);
    await vi.waitFor(async () => expect(await coordinator.shouldRun(key, TTL_MS)).toBe(true), { timeout: 15_000 });
    const runs = holdfast.semaphore(name, { permits: 1_000_000 });
    expect((await runs.inspect()).holders).toHaveLength(1);
    await coordinator.onComplete(key);
    expect((await runs.inspect()).holders).toHaveLength(0);
  });

  test.each(["}{", "%7D", "a:b/c d\n", "é".repeat(600), `${"x".repeat(5_000)}}`])(
    "can be any string: %.8s",
    async (odd) => {
      const coordinator = runCoordinator(holdfast, { name });
      expect(await coordinator.shouldRun(odd, TTL_MS)).toBe(true);
      expect(await runCoordinator(other, { name }).shouldRun(odd, TTL_MS)).toBe(false);
      expect(await coordinator.shouldRun(`${odd}2`, TTL_MS)).toBe(true);
      await coordinator.onComplete(odd);
      await coordinator.onComplete(`${odd}2`);
    },
  );

  test("is requested within half of its TTL, even if the jitter is longer", async () => {
    const coordinator = runCoordinator(holdfast, { name, jitterMaxMs: 3_600_000 });
    expect(await coordinator.shouldRun(key, 1_000)).toBe(true);
    await coordinator.onComplete(key);
  });

  test("of a name with a slash never collides with a key of another name", async () => {
    const [one, another] = [`${name}/team`, name].map((each) => runCoordinator(holdfast, { name: each }));
    expect(await one?.shouldRun("job:1", TTL_MS)).toBe(true);
    expect(await another?.shouldRun("team/job:1", TTL_MS)).toBe(true);
    await one?.onComplete("job:1");
    await another?.onComplete("team/job:1");
  });

  test("is separate for each coordinator name", async () => {
    const coordinators = ["a", "b"].map((each) => runCoordinator(holdfast, { name: `${name} ${each}` }));
    for (const each of coordinators) {
      expect(await each.shouldRun(key, TTL_MS)).toBe(true);
      await each.onComplete(key);
    }
  });

  test("works on the embedded store too", async () => {
    const local = createHoldfast({ store: embedded() });
    const coordinator = runCoordinator(local);
    expect([await coordinator.shouldRun(key, TTL_MS), await coordinator.shouldRun(key, TTL_MS)]).toEqual([true, false]);
    await local.close();
  });
});

describe("`shouldRun` never throws and returns", () => {
  test("false when the server is down, and the history records it later", async () => {
    const seen = skips();
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 50, maxRetriesPerRequest: 0 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs: 500 });
    onTestFinished(async () => {
      await local.close();
      client.disconnect();
      await proxy.close();
    });
    const coordinator = runCoordinator(local, { name, history: true });
    proxy.refuse(true);
    proxy.cutAll();
    expect(await coordinator.shouldRun(key, TTL_MS)).toBe(false);
    expect(seen).toMatchObject([{ reason: "unavailable", tick: key, refusal: { error: { name: "StoreError" } } }]);
    expect(coordinator.counts.skipped.unavailable).toBe(1);
    proxy.refuse(false);
    await vi.waitFor(
      async () =>
        expect(await readHistory(other, { name })).toMatchObject([
          { outcome: "skipped", reason: "unavailable", errorName: "StoreError", tick: key },
        ]),
      { timeout: 15_000 },
    );
    expect(await runCoordinator(other, { name }).shouldRun(key, TTL_MS)).toBe(true);
  });

  test("false for an invalid key, during the failover grace period, and after a close", async () => {
    const seen = skips();
    const own = await startRedis();
    const client = new Redis({ port: own.port });
    const local = createHoldfast({ redis: client, failoverGrace: "strict" });
    const coordinator = runCoordinator(local, { name });
    expect(await coordinator.shouldRun(key, TTL_MS)).toBe(false);
    expect(await coordinator.shouldRun(undefined as never, Number.NaN)).toBe(false);
    expect(await coordinator.shouldRun("\ud800", TTL_MS)).toBe(false);
    await local.close();
    expect(await coordinator.shouldRun(key, TTL_MS)).toBe(false);
    await coordinator.onComplete(key);
    expect(seen.map(({ reason }) => reason)).toEqual(["grace", "unavailable", "unavailable", "unavailable"]);
    client.disconnect();
    await own.stop();
  });

  test("false immediately when Holdfast closes during the jitter, and leaves no timer", async () => {
    const seen = skips();
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client });
    onTestFinished(() => client.disconnect());
    await client.ping();
    const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
    const before = timers();
    const asking = runCoordinator(local, { name, jitterMaxMs: 3_600_000 }).shouldRun(key, 86_400_000);
    await until(() => timers() > before, "the jitter");
    await local.close();
    expect(await asking).toBe(false);
    expect(seen).toMatchObject([{ reason: "unavailable", refusal: { error: { name: "ClosedError" } } }]);
    expect(await runCoordinator(other, { name }).shouldRun(key, TTL_MS)).toBe(true);
  });

  test("false while its name is paused", async () => {
    const seen = skips();
    await holdfast.pause(name, { kind: "semaphore", by: "ana", label: "db maintenance" });
    expect(await runCoordinator(other, { name }).shouldRun(key, TTL_MS)).toBe(false);
    expect(seen).toMatchObject([{ reason: "paused", refusal: { label: "db maintenance" } }]);
    await holdfast.resume(name, { kind: "semaphore", by: "ana" });
    expect(await runCoordinator(other, { name }).shouldRun(`${key} next`, TTL_MS)).toBe(true);
  });

  test("true after a retry if the reply to its request is lost", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    const coordinator = runCoordinator(local, { name });
    await coordinator.shouldRun(`${key} warm`, TTL_MS);
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${mutexAcquire.sha1}`, "i"));
    expect(await coordinator.shouldRun(key, TTL_MS)).toBe(true);
    await struck;
    expect(await runCoordinator(other, { name }).shouldRun(key, TTL_MS)).toBe(false);
    await local.close();
    client.disconnect();
    await proxy.close();
  });
});

test.each([
  [{ name: "" }, "name"],
  [{ jitterMaxMs: -1 }, "jitterMaxMs"],
  [{ history: 1 }, "history"],
  [{ ttlMs: 5 }, "ttlMs"],
])("an invalid option throws an error that names it: %o", (options, option) => {
  expect(() => runCoordinator(holdfast, options as object)).toThrow(option);
});

describe("with node-cron", () => {
  let tasks: ScheduledTask[];
  beforeEach(() => {
    tasks = [];
  });
  async function end(): Promise<void> {
    for (const task of tasks) await task.destroy();
    setRunCoordinator(undefined);
  }

  test("three instances run each fire once, and the others report `not-elected`", async () => {
    onTestFinished(end);
    const runs: string[] = [];
    const reasons: (string | undefined)[] = [];
    // Typed by the library, to check that Holdfast's coordinator fits its interface.
    const coordinators: RunCoordinator[] = [holdfast, other, other].map((on) => runCoordinator(on, { name }));
    setRunCoordinator(coordinators[0]);
    for (const runCoordinator of coordinators) {
      const task = schedule("* * * * * *", ({ date }: TaskContext) => void runs.push(date.toISOString()), {
        name: "feed",
        distributed: true,
        ...(runCoordinator === coordinators[0] ? {} : { runCoordinator }),
      });
      task.on("execution:skipped", ({ reason }) => void reasons.push(reason));
      tasks.push(task);
    }
    await until(() => runs.length >= 2 && reasons.length >= 4, "some fires");
    expect(new Set(runs).size).toBe(runs.length);
    expect(new Set(reasons)).toEqual(new Set(["not-elected"]));
  });

  test("history: a run whose process crashed is shown as ending, not as running", async () => {
    const client = new Redis({ port: server.port });
    const dying = createHoldfast({ redis: client });
    expect(await runCoordinator(dying, { name, history: true }).shouldRun(key, TTL_MS)).toBe(true);
    await vi.waitFor(async () => expect(await readHistory(other, { name })).toMatchObject([{ outcome: "held" }]), {
      timeout: 15_000,
    });
    // From here on, nothing from this client reaches the server. Its lease is then set to expired.
    client.disconnect();
    const holders = `hf:semaphore:{${name}}:holders`;
    const [owner] = (await redis.zrange(holders, "0", "-1")).filter((each) => each !== "-");
    await redis.zadd(holders, 1, owner as string);
    expect(await readHistory(other, { name })).toMatchObject([{ outcome: "ending", tick: key }]);
    expect(await runCoordinator(other, { name }).shouldRun(key, TTL_MS)).toBe(false);
    await dying.close();
  });

  test("history: a run is shown as held, then as released", async () => {
    onTestFinished(end);
    const coordinator = runCoordinator(holdfast, { name, history: true });
    let finish = (): void => {};
    const work = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const task = schedule("* * * * * *", () => work, {
      name: "feed",
      distributed: true,
      runCoordinator: coordinator,
      noOverlap: true,
      logger: { info() {}, warn() {}, error() {}, debug() {} },
    });
    tasks.push(task);
    const entry = { kind: "semaphore", tick: expect.stringContaining("feed:20"), pid: process.pid };
    await vi.waitFor(
      async () => expect(await readHistory(other, { name })).toMatchObject([{ ...entry, outcome: "held" }]),
      { timeout: 15_000 },
    );
    await task.stop();
    finish();
    await vi.waitFor(
      async () => expect(await readHistory(other, { name })).toMatchObject([{ ...entry, outcome: "released" }]),
      { timeout: 15_000 },
    );
    expect(coordinator.counts).toMatchObject({ started: 1, ended: { unreported: 1 } });
  });
});
