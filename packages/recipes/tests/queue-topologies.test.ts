/** `keyed`, `coalesce` and `once` on failing servers and on a cluster, and `workerSlot` on a cluster. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Cluster, type Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../tests/support/redis-cluster.js";
import { coalesce, keyed, OnceRunningError, once, workerSlot } from "../src/index.js";
import { type FailingServers, failingServers } from "./failing-servers.js";
import { eventually, held } from "./queue-scene.js";

// Longer than any outage, even on a slow machine, because a waiter gives up after a whole lease without a reply.
const leaseMs = 15_000;
let closers: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.allSettled(closers.map((close) => close()));
  closers = [];
});

function holdfastOn(redis: Redis | Cluster, options: FailingServers["options"] = {}): Holdfast {
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis, ...options });
  closers.push(async () => {
    await holdfast.close();
    redis.disconnect();
  });
  return holdfast;
}

describe.each(failingServers)("$name", { timeout: 120_000 }, (stage) => {
  beforeAll(() => stage.start(), 60_000);
  afterAll(() => stage.stop());
  const client = (): Holdfast => holdfastOn(stage.client(), stage.options);

  test("all events of one object are applied, one at a time", async () => {
    const name = randomUUID();
    const [first, second] = [client(), client()];
    let inside = 0;
    const ran: string[] = [];
    const apply = (holdfast: Holdfast, mark: string, meanwhile: () => Promise<void> = async () => {}) =>
      keyed(holdfast, "test").run(
        name,
        async (lease) => {
          inside += 1;
          await meanwhile();
          // A holder that knows of its loss may overlap with the next one.
          if (lease.validForMs() > 0) expect(inside).toBe(1);
          inside -= 1;
          ran.push(mark);
        },
        { eventId: mark, leaseMs, waitMs: Infinity },
      );
    await apply(second, "warm");
    const began = held<void>();
    const running = apply(first, "first", began.work);
    await began.began;
    const waiting = apply(second, "second");
    await stage.fail();
    began.end();
    const outcome = await running.catch((error: unknown) => error as Error);
    expect(await waiting).toMatchObject({ outcome: "ran" });
    // Either the event is recorded on the new master, or the call failed and the event is delivered again.
    const again = await apply(second, "first");
    expect(again.outcome).toBe("outcome" in outcome ? "duplicate" : "ran");
    expect(ran).toContain("second");
  });

  test("coalesced calls run one at a time, and the newest runs", async () => {
    const name = randomUUID();
    const [first, second] = [client(), client()];
    await coalesce(second, name, () => {}, { leaseMs });
    const began = held<void>();
    let isRunning = false;
    const running = coalesce(
      first,
      name,
      async (lease) => {
        isRunning = true;
        await began.work();
        const wasHeld = lease.validForMs() > 0;
        isRunning = false;
        return wasHeld;
      },
      { leaseMs },
    );
    await began.began;
    let wasAlone: boolean | undefined;
    const older = coalesce(second, name, () => "older", { leaseMs });
    const newest = coalesce(
      second,
      name,
      () => {
        wasAlone = !isRunning;
        return "newest";
      },
      { leaseMs },
    );
    // This reply shows that both calls are in the queue. A call that is cut off earlier may lose its place.
    expect(await coalesce(second, name, () => "none", { leaseMs, waitMs: 0 })).toMatchObject({ outcome: "refused" });
    await stage.fail();
    began.end();
    const outcome = await running.catch((error: unknown) => error as { name: string });
    expect("outcome" in outcome ? outcome.outcome : outcome.name).toMatch(/^(?:ran|WorkLostError)$/);
    expect(await newest).toEqual({ outcome: "ran", value: "newest" });
    expect(wasAlone).toBe(true);
    expect(["ran", "superseded"]).toContain((await older).outcome);
  });
});

describe("on a cluster", { timeout: 120_000 }, () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);
  afterAll(() => cluster?.stop());

  function client(): Holdfast {
    return holdfastOn(new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port }))));
  }

  test("events of one object are applied once and in order in any slot", async () => {
    const [first, second] = [client(), client()];
    const names = Array.from({ length: 6 }, () => randomUUID());
    for (const name of names) {
      const order: string[] = [];
      const apply = (holdfast: Holdfast, mark: string, eventId: string) =>
        keyed(holdfast, "test").run(name, () => void order.push(mark), { eventId, sequence: order.length });
      const began = held<void>();
      const running = keyed(first, "test").run(name, began.work, { eventId: "e0" });
      await began.began;
      const waiting = apply(second, "1", "e1");
      const again = apply(first, "never", "e0");
      began.end();
      expect(await running).toMatchObject({ outcome: "ran" });
      expect(await again).toEqual({ outcome: "duplicate" });
      expect(await waiting).toMatchObject({ outcome: "ran" });
      expect(order).toEqual(["1"]);
    }
  });

  test("a call runs once, and a waiter gets its result or takes over in any slot", async () => {
    const [first, second] = [client(), client()];
    for (const key of Array.from({ length: 6 }, () => randomUUID())) {
      const began = held<string>();
      const running = once(first, key, began.work);
      await began.began;
      const waiting = once(second, key, () => "never");
      await expect(once(second, key, () => "never", { whenRunning: "reject" })).rejects.toThrow(OnceRunningError);
      began.end("first");
      expect(await running).toMatchObject({ value: "first", replayed: false });
      expect(await waiting).toMatchObject({ value: "first", replayed: true });

      const failing = held<string>();
      const given = once(first, `${key}:2`, failing.work);
      await failing.began;
      const next = once(second, `${key}:2`, (lease) => lease.attempt);
      failing.end(Promise.reject(new Error("no")));
      await expect(given).rejects.toThrow("no");
      expect(await next).toMatchObject({ value: 2, replayed: false });
    }
  });

  test("coalesced calls receive their turn, a superseding call or a cancellation in any slot", async () => {
    const [first, second] = [client(), client()];
    for (const name of Array.from({ length: 6 }, () => randomUUID())) {
      const asked = held<void>();
      const running = coalesce(first, name, async ({ signal }) => {
        const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
        void asked.work();
        await aborted;
        return "ended";
      });
      await asked.began;
      const joining = coalesce(second, name, () => "never", { mode: "join" });
      const older = coalesce(first, name, () => "older");
      const waits = async (): Promise<void> =>
        expect((await coalesce(second, name, () => 0, { waitMs: 1 })).outcome).toBe("refused");
      await waits();
      const newest = coalesce(second, name, () => "newest", { cancelRunning: true });
      expect(await running).toEqual({ outcome: "ran", value: "ended" });
      const outcomes = (await Promise.all([newest, older])).map(({ outcome }) => outcome);
      // The network decides which of the two clients comes first.
      expect(outcomes).toContain("ran");
      for (const outcome of outcomes) expect(["ran", "superseded"]).toContain(outcome);
      expect(["ran", "joined"]).toContain((await joining).outcome);
    }
  });

  test("a released number goes to the next worker with a later start time in any slot", async () => {
    const [first, second] = [client(), client()];
    for (const name of Array.from({ length: 6 }, () => randomUUID())) {
      const [slot, beside] = [
        await workerSlot(first, name, { count: 2 }),
        await workerSlot(second, name, { count: 2 }),
      ];
      const waiting = workerSlot(second, name, { count: 2, waitMs: 60_000 });
      await vi.waitFor(
        async () => expect((await second.semaphore(name, { permits: 2 }).inspect()).waiterCount).toBe(1),
        eventually,
      );
      slot.assertHeld();
      const lastMs = Date.now();
      await slot.extend(60_000);
      await slot.release();
      const next = await waiting;
      expect([slot.number, beside.number, next.number]).toEqual([0, 1, 0]);
      expect(next.notBeforeAtMs).toBeGreaterThanOrEqual(lastMs);
      await Promise.all([beside.release(), next.release()]);
    }
  });
});
