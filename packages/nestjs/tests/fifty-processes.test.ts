/** Every integration in fifty concurrent processes, and the guarantees that it keeps. */
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { PROCESSES, startMany, tally, visits } from "../../recipes/tests/many-processes.js";
import { eventually, useQueueScene } from "../../recipes/tests/queue-scene.js";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });
const scene = useQueueScene();
const many = startMany(() =>
  startProgram(new URL("./programs/caller.mjs", import.meta.url), { port: scene.server.port }),
);
let redis: Redis;

beforeAll(() => {
  redis = new Redis({ port: scene.server.port, maxRetriesPerRequest: null });
});
afterAll(() => redis?.disconnect());
afterEach(async () => {
  await many.all("close");
});

const soon = (): { atMs: number } => ({ atMs: Date.now() + 300 });

test("BullMQ: fifty jobs with one key run one at a time, each once", async () => {
  const { name } = scene;
  const queue = new Queue(name, { connection: redis as never });
  await many.all("work", { name });
  const ids = Array.from({ length: PROCESSES }, (_, at) => `job-${at}`);
  await queue.addBulk(ids.map((jobId) => ({ name: "bill", data: {}, opts: { jobId } })));
  await vi.waitFor(async () => expect(await queue.getCompletedCount()).toBe(PROCESSES), eventually);
  expect((await visits(redis, name)).toSorted()).toEqual(ids.toSorted());
  await queue.close();
});

test("node-cron coordinator: each fire runs in one process and never again", async () => {
  const { name } = scene;
  const keys = Array.from({ length: 20 }, (_, at) => `feed:2026-01-01T00:00:${at}Z`);
  const answers = await many.all<boolean[]>("fire", { name, keys, ...soon() });
  const runsOf = (at: number): number => answers.filter((answer) => answer[at]).length;
  expect(keys.map((_, at) => runsOf(at))).toEqual(keys.map(() => 1));
  await many.all("complete", { keys });
  expect((await many.all<boolean[]>("fire", { name, keys, ...soon() })).flat()).not.toContain(true);
});

test("node-cron: each fire runs in one process, and the others report `not-elected`", async () => {
  const { name } = scene;
  await many.all("schedule", { name });
  const runs = `${name}:runs`;
  await vi.waitFor(async () => expect(await redis.llen(runs)).toBeGreaterThan(2), eventually);
  await vi.waitFor(
    async () => expect(Number(await redis.hget(`${name}:reasons`, "not-elected"))).toBeGreaterThan(PROCESSES),
    eventually,
  );
  await many.all("close");
  const dates = await redis.lrange(runs, 0, -1);
  expect(new Set(dates).size).toBe(dates.length);
  expect(await redis.hkeys(`${name}:reasons`)).toEqual(["not-elected"]);
});

test("Nest @Locked: all calls run, one at a time", async () => {
  const { name } = scene;
  await many.all("locked", { name });
  await many.all("call", soon());
  expect(await visits(redis, name)).toHaveLength(PROCESSES);
});

test("Nest @Scheduled: one process runs per period, and the others get `already-done`", async () => {
  const { name } = scene;
  await many.all("scheduled", { name });
  const found = await many.all<{ reason: string } | undefined>("call", soon());
  expect(tally(found.map((refusal) => refusal?.reason))).toEqual({ undefined: 1, "already-done": PROCESSES - 1 });
  expect(await visits(redis, name)).toHaveLength(1);
});

test("Nest @Leading: one process leads at a time, in ever higher terms", async () => {
  const { name, holdfast } = scene;
  await many.all("lead", { name, terms: PROCESSES });
  await vi.waitFor(async () => expect(await redis.llen(`${name}:visits`)).toBe(2 * PROCESSES - 1), eventually);
  expect((await holdfast.election(name).inspect()).holders).toHaveLength(1);
  // Closing ends the current leader, and every process that becomes the leader in the meantime.
  await many.all("close");
  const terms = (await visits(redis, name)).map(Number);
  expect(terms.length).toBeGreaterThanOrEqual(PROCESSES);
  expect(terms).toEqual([...new Set(terms)].toSorted((a, b) => a - b));
  expect((await holdfast.election(name).inspect()).holders).toEqual([]);
});
