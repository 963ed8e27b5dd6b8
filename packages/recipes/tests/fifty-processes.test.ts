/** The guarantees of every recipe when fifty processes call it at the same time. */
import { describe, expect, test, vi } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { coalesce, counter, keyed, versioned } from "../src/index.js";
import { PROCESSES, startMany, tally, visits as visitsOf } from "./many-processes.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";

const leaseMs = 600_000;

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });
const scene = useQueueScene();
const many = startMany(() =>
  startProgram(new URL("./programs/caller.mjs", import.meta.url), { port: scene.server.port }),
);
const { programs } = many;

/** Calls the recipe in all processes at the same moment. The input may differ per process. */
async function allCall<Answer>(recipe: string, input: (at: number) => object = () => ({})): Promise<Answer[]> {
  const atMs = Date.now() + 300;
  return await many.all("call", (at) => ({ name: scene.name, ...input(at), recipe, atMs }));
}

const visits = (of = scene.name): Promise<readonly string[]> => visitsOf(scene.redis, of);
const upTo = (count: number, first = 0): readonly number[] => Array.from({ length: count }, (_, at) => first + at);
const sorted = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b);

test("once: one process runs, and the others get its value", async () => {
  const all = await allCall<{ value: number; replayed: boolean; attempt: number }>("once");
  expect(tally(all.map(({ replayed }) => replayed))).toEqual({ false: 1, true: PROCESSES - 1 });
  for (const { value, attempt } of all) expect([value, attempt]).toEqual([all[0]?.value, 1]);
  expect(await visits()).toHaveLength(1);
});

test("lead: one process leads at a time, with rising terms", async () => {
  const { holdfast, name, redis } = scene;
  const leading = allCall("lead", () => ({ terms: PROCESSES }));
  const list = `${name}:visits`;
  // Every process has begun its term, and all but the last have ended it.
  await vi.waitFor(async () => expect(await redis.llen(list)).toBe(2 * PROCESSES - 1), eventually);
  const roles = await Promise.all(programs.map((program) => program.call<string>("role", { name })));
  expect(tally(roles)).toEqual({ leader: 1, follower: PROCESSES - 1 });
  const last = programs[roles.indexOf("leader")];
  const leader = await holdfast.election(name).leader();
  expect(leader?.pid).toBe(last?.pid);
  await last?.call("resign", { name });
  await leading;
  const terms = (await visits()).map(Number);
  expect(terms).toHaveLength(PROCESSES);
  expect(terms).toEqual(sorted([...new Set(terms)]));
  expect(leader?.term).toBe(terms.at(-1));
  expect(await holdfast.election(name).leader()).toBeNull();
});

test("scheduled: one process runs in the period, and the others are refused as already done", async () => {
  expect(tally(await allCall("scheduled"))).toEqual({ ran: 1, "already-done": PROCESSES - 1 });
  expect(await visits()).toHaveLength(1);
});

test("versioned: each process increments once, and no increment is lost", async () => {
  const { holdfast, name } = scene;
  const all = await allCall<{ value: number; version: number }>("versioned");
  expect(sorted(all.map(({ value }) => value))).toEqual(upTo(PROCESSES, 1));
  expect(new Set(all.map(({ version }) => version)).size).toBe(PROCESSES);
  expect((await versioned(holdfast, name).get()).value).toBe(PROCESSES);
});

test("counter: a stock of 20 sells 20, and retries sell no more", async () => {
  const { holdfast, name } = scene;
  await counter(holdfast, name).put(20, { requestId: "delivery" });
  const left = await allCall<number | null>("counter");
  expect(sorted(left.filter((one) => one !== null))).toEqual(upTo(20));
  expect(await allCall<number | null>("counter")).toEqual(left);
  expect(await counter(holdfast, name).read()).toBe(0);
});

test("keyed: each object runs one event at a time, in order of arrival", async () => {
  const { holdfast, name, redis } = scene;
  const objects = upTo(5).map((at) => `${name}:${at}`);
  const firsts = objects.map(() => held<void>());
  const running = objects.map((object, at) =>
    keyed(holdfast, "test").run(object, firsts[at]?.work ?? (() => {}), { leaseMs }),
  );
  await Promise.all(firsts.map(({ began }) => began));
  const calling = allCall<string>("keyed", (at) => ({ name: objects[at % objects.length] }));
  const queues = objects.map((object) => `hf:mutex:{keyed/test/${object}}:queue`);
  for (const queue of queues) {
    await vi.waitFor(async () => expect(await redis.zcard(queue)).toBe(PROCESSES / objects.length), eventually);
  }
  const arrived = await Promise.all(queues.map((queue) => redis.zrange(queue, "0", "-1")));
  for (const first of firsts) first.end();
  await Promise.all(running);
  expect(tally(await calling)).toEqual({ ran: PROCESSES });
  expect(await Promise.all(objects.map((object) => visits(object)))).toEqual(arrived);
});

test("fence: a token below the highest seen is refused, and the final value has the highest token", async () => {
  const { name, redis } = scene;
  const tokens = await Promise.all(programs.map((program) => program.call<number>("token", { name })));
  const highest = Math.max(...tokens);
  const write = (): Promise<("written" | number)[]> => allCall("fence", (at) => ({ token: tokens[at] }));
  for (const [at, answer] of (await write()).entries()) {
    if (answer !== "written") expect(answer).toBeGreaterThan(tokens[at] as number);
  }
  expect(await redis.get(`${name}:data`)).toBe(String(highest));
  // The highest token has now been seen, so every other one is refused.
  expect(await write()).toEqual(tokens.map((token) => (token === highest ? "written" : highest)));
  expect(await redis.get(`${name}:data`)).toBe(String(highest));
});

test("worker slots: with 20 slots, 20 processes get different numbers", async () => {
  const { holdfast, name } = scene;
  const numbers = await allCall<number | undefined>("slot", () => ({ count: 20 }));
  expect(sorted(numbers.filter((one) => one !== undefined))).toEqual(upTo(20));
  await Promise.all(programs.map((program) => program.call("giveBack")));
  expect(await holdfast.semaphore(name, { permits: 20 }).inspect()).toMatchObject({ used: 0 });
});

describe("coalesce", () => {
  test.each([
    ["newest", "waiting", "superseded"],
    ["join", "joining", "joined"],
  ] as const)("%s: calls during a run need one more run", async (mode, set, others) => {
    const { holdfast, name, redis } = scene;
    const first = held<void>();
    const running = coalesce(holdfast, name, first.work, { leaseMs });
    await first.began;
    const calling = allCall<{ outcome: string; value?: { begun: number } }>("coalesce", () => ({ mode }));
    const waiting = `hf:coalesce:{${name}}:${set}`;
    await vi.waitFor(async () => expect(await redis.zcard(waiting)).toBe(PROCESSES), eventually);
    first.end();
    await running;
    const all = await calling;
    expect(tally(all.map(({ outcome }) => outcome))).toEqual({ ran: 1, [others]: PROCESSES - 1 });
    expect(await visits()).toEqual([String(PROCESSES)]);
  });

  test.each(["newest", "join"] as const)("%s: runs never overlap, and one begins after the last call", async (mode) => {
    const all = await allCall<{ outcome: string }>("coalesce", () => ({ mode }));
    const runs = await visits();
    expect(runs).toHaveLength(all.filter(({ outcome }) => outcome === "ran").length);
    expect(runs.at(-1)).toBe(String(PROCESSES));
  });
});

test("cache: a cold value is loaded once, and all processes get it", async () => {
  const pids = await allCall<number>("cache");
  expect(tally(pids)).toEqual({ [String(pids[0])]: PROCESSES });
  expect(await visits()).toHaveLength(1);
});
