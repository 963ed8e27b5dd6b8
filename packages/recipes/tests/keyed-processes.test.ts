/**
 * Events from many processes, some of which are killed or frozen.
 *
 * `HOLDFAST_SOAK_EVENTS=100` delivers 100 events of each of 50 objects in each of 10 processes. They must be applied in
 * the order of their arrival, which the test reads with MONITOR.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { startMonitor } from "../../../tests/support/monitor.js";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { mutexAcquire } from "../../holdfast/src/generated/scripts.js";
import { keyed } from "../src/index.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";
import { endsAtMs, expectTakeover, serverMs } from "./takeover.js";

const SOAK = Number(process.env.HOLDFAST_SOAK_EVENTS ?? 0);
const [PROCESSES, OBJECTS, EVENTS] = SOAK > 0 ? [10, 50, SOAK] : [4, 5, 20];
/** Longer than any test, so that a test that waits for a lease to expire times out. */
const leaseMs = 600_000;

const scene = useQueueScene();
let programs: Program[] = [];
afterEach(async () => {
  await Promise.all(programs.map((each) => each.kill()));
  programs = [];
});

async function program(port = scene.server.port): Promise<Program> {
  const started = startProgram(new URL("./programs/keyed.mjs", import.meta.url), { port });
  programs.push(started);
  await started.call("ready", { object: `warm:${started.pid}` });
  return started;
}

const lock = (): string => `hf:mutex:{keyed/test/${scene.name}}`;

async function queued(count: number): Promise<void> {
  await vi.waitFor(async () => expect(await scene.redis.zcard(`${lock()}:queue`)).toBe(count), eventually);
}

test(`${EVENTS} events of each of ${OBJECTS} objects in each of ${PROCESSES} processes run in order of arrival`, {
  timeout: 3_600_000,
}, async () => {
  const { name, redis, server } = scene;
  const all = await Promise.all(Array.from({ length: PROCESSES }, () => program()));
  const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}:${at}`);
  const arrived = new Map<string, Set<string>>();
  const monitor = await startMonitor(server);
  const note = (sent: readonly string[][]): void => {
    for (const [command, sha1, count, key = "", ...words] of sent) {
      if (command !== "evalsha" || sha1 !== mutexAcquire.sha1 || !key.includes(name)) continue;
      const [owner = "", , , , enqueue] = words.slice(Number(count) - 1);
      // 1 joins the queue and 2 re-checks. With 0 the claim would join the queue only with a later request.
      expect(["1", "2"]).toContain(enqueue);
      arrived.set(key, (arrived.get(key) ?? new Set()).add(owner));
    }
  };
  const startedAt = performance.now();
  let isOver = false;
  const delivering = Promise.all(
    all.map((each) => each.call<Record<string, number>>("deliver", { objects, events: EVENTS, atOnce: 3 })),
  ).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    // A failed read is repeated in the next round.
    note(await monitor.sent().catch(() => []));
    await Promise.race([delivering, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
  const outcomes = await delivering;
  note(await vi.waitFor(() => monitor.sent(), eventually));
  monitor.stop();
  for (const outcome of outcomes) expect(outcome).toEqual({ ran: OBJECTS * EVENTS });
  let overtakings = 0;
  for (const object of objects) {
    const turns = await redis.lrange(`${object}:turns`, 0, -1);
    const order = [...(arrived.get(`hf:mutex:{keyed/test/${object}}`) ?? [])];
    expect(turns).toHaveLength(PROCESSES * EVENTS);
    expect(turns).toEqual(order);
    const client = (owner = ""): string => owner.slice(0, owner.indexOf("/"));
    overtakings += turns.filter((owner, at) => at > 0 && client(owner) !== client(turns[at - 1])).length;
  }
  // Otherwise the processes ran one after the other, and the test shows nothing about order.
  expect(overtakings).toBeGreaterThan(OBJECTS * PROCESSES);
  if (SOAK > 0) {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    console.log(`${PROCESSES * OBJECTS * EVENTS} events in ${seconds} s, another process's turn ${overtakings} times`);
  }
});

// Processes start slowly on a busy machine.
describe("processes that crash or freeze", { timeout: 120_000 }, () => {
  test("anywhere in the queue are skipped, and all others keep their order", async () => {
    const { holdfast, other, name, redis } = scene;
    const [head, middle, tail] = (await Promise.all([program(), program(), program()])) as [Program, Program, Program];
    const first = held<void>();
    const running = keyed(holdfast, "test").run(name, first.work, { leaseMs });
    await first.began;
    const order: string[] = [];
    const wait = (mark: string) =>
      keyed(other, "test").run(name, () => void order.push(mark), { leaseMs, waitMs: Infinity });
    const die = (one: Program, mark: string): void =>
      void one.call("apply", { object: name, mark, leaseMs }).catch(() => {});
    die(head, "head");
    await queued(1);
    const second = wait("second");
    await queued(2);
    die(middle, "middle");
    await queued(3);
    const third = wait("third");
    await queued(4);
    die(tail, "tail");
    await queued(5);
    await Promise.all([head.kill(), middle.kill(), tail.kill()]);
    first.end();
    // If a dead process were granted the lock, it would keep it for ten minutes.
    await Promise.all([running, second, third]);
    expect(order).toEqual(["second", "third"]);
    await vi.waitFor(async () => expect(await redis.exists(lock(), `${lock()}:queue`)).toBe(0), eventually);
    expect(await redis.lrange(`${name}:applied`, 0, -1)).toEqual([]);
  });

  test("while they apply an event leave it to the next delivery after the lease expires", async () => {
    const { holdfast, name, redis } = scene;
    const dying = await program();
    const began = dying.heard("began");
    const input = { object: name, mark: "dead", leaseMs: 1_000, eventId: "e1" };
    const killed = dying.call("apply", input).catch(() => {});
    await began;
    await dying.kill();
    await killed;
    const token = Number(await redis.get(`${lock()}:fence`));
    const leaseMs = await endsAtMs(redis, lock());
    const askedMs = await serverMs(redis);
    const next = await keyed(holdfast, "test").run(name, (lease) => lease.token, { eventId: "e1", waitMs: 60_000 });
    expect(next.outcome).toBe("ran");
    const second = "value" in next ? next.value : 0;
    expect(second).toBeGreaterThan(token);
    expectTakeover(second, { leaseMs, askedMs });
    expect(await redis.lrange(`${name}:applied`, 0, -1)).toEqual([]);
  });

  test("beyond the lease record nothing and get a WorkLostError with their result", async () => {
    const { holdfast, name } = scene;
    const late = await program();
    const began = late.heard("began");
    const answer = late.call("apply", { object: name, mark: "late", leaseMs: 1_000, eventId: "e1" });
    await began;
    late.freeze();
    const second = held<string>();
    const next = keyed(holdfast, "test").run(name, second.work, { eventId: "e1", waitMs: 60_000 });
    await second.began;
    late.resume();
    await late.call("finish");
    expect(await answer).toEqual({ error: "WorkLostError", value: "late" });
    second.end("second");
    expect(await next).toEqual({ outcome: "ran", value: "second" });
    const third = keyed(holdfast, "test").run(name, () => "third", { eventId: "e1" });
    expect(await third).toEqual({ outcome: "duplicate" });
  });
});
