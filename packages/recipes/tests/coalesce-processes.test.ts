/**
 * Calls from many processes, some of which are killed or frozen.
 *
 * `HOLDFAST_SOAK_CALLS=20000` makes 20,000 calls in ten processes.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { coalesce } from "../src/index.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";

const CALLS = Number(process.env.HOLDFAST_SOAK_CALLS ?? 1_000);
const PROCESSES = 10;
/** Longer than any test, so that a test that waits for a lease to expire times out. */
const leaseMs = 600_000;

const scene = useQueueScene();
let programs: Program[] = [];
afterEach(async () => {
  await Promise.all(programs.map((each) => each.kill()));
  programs = [];
});

async function program(): Promise<Program> {
  const started = startProgram(new URL("./programs/coalesce.mjs", import.meta.url), { port: scene.server.port });
  programs.push(started);
  await started.call("ready", { name: `warm:${started.pid}` });
  return started;
}

const key = (suffix = ""): string => `hf:coalesce:{${scene.name}}${suffix}`;

async function waiting(count: number, set = "waiting"): Promise<void> {
  await vi.waitFor(async () => expect(await scene.redis.zcard(key(`:${set}`))).toBe(count), eventually);
}

function sum(all: readonly Record<string, number>[]): Record<string, number> {
  const outcomes: Record<string, number> = {};
  for (const one of all)
    for (const [name, count] of Object.entries(one)) outcomes[name] = (outcomes[name] ?? 0) + count;
  return outcomes;
}

// Processes start slowly on a busy machine.
describe(`${CALLS} calls in ${PROCESSES} processes`, { timeout: 3_600_000 }, () => {
  test.each(["newest", "join"] as const)("need one more run if they arrive during a run: %s", async (mode) => {
    const { holdfast, name, redis } = scene;
    const all = await Promise.all(Array.from({ length: PROCESSES }, program));
    const first = held<void>();
    const running = coalesce(holdfast, name, first.work, { leaseMs });
    await first.began;
    const calls = 1_000 / PROCESSES;
    const calling = Promise.all(
      all.map((each) => each.call<Record<string, number>>("many", { name, calls, atOnce: calls, mode })),
    );
    const set = mode === "newest" ? "waiting" : "joining";
    await waiting(1_000, set);
    first.end();
    await running;
    const others = mode === "newest" ? "superseded" : "joined";
    expect(sum(await calling)).toEqual({ ran: 1, [others]: 999 });
    expect(await redis.llen(`${name}:runs`)).toBe(1);
    await vi.waitFor(async () => expect(await redis.exists(key(), key(`:${set}`))).toBe(0), eventually);
  });

  test.each(["newest", "join"] as const)("never overlap, and one run begins after the last call: %s", async (mode) => {
    const { name, redis } = scene;
    const all = await Promise.all(Array.from({ length: PROCESSES }, program));
    const startedAt = performance.now();
    const outcomes = sum(
      await Promise.all(
        all.map((each) =>
          each.call<Record<string, number>>("many", { name, calls: CALLS / PROCESSES, atOnce: 20, mode }),
        ),
      ),
    );
    const runs = (await redis.lrange(`${name}:runs`, 0, -1)).map((each) => each.split(" ").map(Number));
    expect(await redis.get(`${name}:overlaps`)).toBeNull();
    expect(runs).toHaveLength(outcomes.ran ?? 0);
    expect(Object.values(outcomes).reduce((all, count) => all + count, 0)).toBe(CALLS);
    expect(Object.keys(outcomes).sort()).toEqual(mode === "newest" ? ["ran", "superseded"] : ["joined", "ran"]);
    // Each run records how many calls had arrived when it began. The last run has seen every call.
    expect(runs.at(-1)?.[1]).toBe(CALLS);
    expect(runs.length).toBeLessThan(CALLS / 2);
    if (process.env.HOLDFAST_SOAK_CALLS !== undefined) {
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      console.log(`${mode}: ${CALLS} calls in ${seconds} s came to ${runs.length} runs`);
    }
  });
});

describe("processes that crash or freeze", { timeout: 120_000 }, () => {
  test("as the newest waiter let the next newest run immediately", async () => {
    const { holdfast, other, name, redis } = scene;
    const dying = await program();
    const first = held<void>();
    const running = coalesce(holdfast, name, first.work, { leaseMs });
    await first.began;
    const older = coalesce(other, name, () => "older", { leaseMs });
    await waiting(1);
    const newer = coalesce(holdfast, name, () => "newer", { leaseMs });
    await waiting(2);
    dying.call("run", { name, mark: "dead", leaseMs }).catch(() => {});
    await waiting(3);
    await dying.kill();
    first.end();
    await running;
    // If the dead process were granted the lock, it would keep it for ten minutes.
    expect(await newer).toEqual({ outcome: "ran", value: "newer" });
    expect(await older).toMatchObject({ outcome: "superseded" });
    expect(await redis.llen(`${name}:runs`)).toBe(0);
  });

  test("during their run are succeeded by the newest waiter after the lease expires", async () => {
    const { holdfast, other, name, redis } = scene;
    const dying = await program();
    const began = dying.heard("began");
    dying.call("run", { name, mark: "dead", leaseMs: 1_000 }).catch(() => {});
    await began;
    const older = coalesce(other, name, () => "older", { leaseMs });
    await waiting(1);
    const newest = coalesce(holdfast, name, ({ token }) => token, { leaseMs });
    await waiting(2);
    const token = Number(await redis.get(key(":fence")));
    await dying.kill();
    const next = await newest;
    expect(next.outcome).toBe("ran");
    expect("value" in next && next.value).toBeGreaterThan(token);
    expect(await older).toMatchObject({ outcome: "superseded" });
  });

  test("during a joined run are succeeded by one of the joined callers", async () => {
    const { holdfast, other, name } = scene;
    const dying = await program();
    const first = held<void>();
    const running = coalesce(holdfast, name, first.work, { leaseMs });
    await first.began;
    const began = dying.heard("began");
    dying.call("run", { name, mark: "dead", leaseMs: 1_000, mode: "join" }).catch(() => {});
    await waiting(1, "joining");
    const joining = [holdfast, other].map((one) => coalesce(one, name, () => "one of us", { leaseMs, mode: "join" }));
    await waiting(3, "joining");
    first.end();
    await running;
    await began;
    await dying.kill();
    const outcomes = (await Promise.all(joining)).map((each) => ({ ...each }));
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["joined", "ran"]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ value: "one of us" });
  });

  test("beyond the lease get a WorkLostError with their result while the next call runs", async () => {
    const { holdfast, name } = scene;
    const late = await program();
    const began = late.heard("began");
    const answer = late.call("run", { name, mark: "late", leaseMs: 1_000 });
    await began;
    late.freeze();
    const second = held<string>();
    const next = coalesce(holdfast, name, second.work, { leaseMs, cancelRunning: true });
    await second.began;
    late.resume();
    await late.call("finish");
    expect(await answer).toEqual({ error: "WorkLostError", value: "late" });
    second.end("second");
    expect(await next).toEqual({ outcome: "ran", value: "second" });
  });

  test("or ignore a cancellation keep the next call waiting until they end", async () => {
    const { holdfast, other, name, redis } = scene;
    const deaf = await program();
    const began = deaf.heard("began");
    const answer = deaf.call("run", { name, mark: "deaf", leaseMs });
    await began;
    const next = held<void>();
    const cancelling = coalesce(holdfast, name, next.work, { leaseMs, cancelRunning: true });
    await waiting(1);
    const owner = await redis.get(key());
    expect(await redis.hget(key(":run"), "cancel")).toMatch(/^[^/]+\/\d+\//);
    expect(await coalesce(other, name, () => "early", { waitMs: 0 })).toMatchObject({ reason: "held" });
    expect(await redis.get(key())).toBe(owner);
    await deaf.call("finish");
    expect(await answer).toEqual({ outcome: "ran", value: "deaf" });
    await next.began;
    next.end();
    expect(await cancelling).toMatchObject({ outcome: "ran" });
  });
});
