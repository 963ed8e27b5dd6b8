/** The pages of one kind, with more locks of another kind than the console lists. */
import { expect, it } from "vitest";
import type { Backend } from "../src/backend.js";
import { Reader } from "../src/reader.js";
import { NOTHING } from "../src/snapshot.js";
import { addSemaphores } from "./many-locks.js";
import { redisScene } from "./scene.js";

const redis = redisScene();
const SEMAPHORES = 20_000;
const ELECTIONS = 20;

it("many semaphores push no election off the list, while both pages are open", { timeout: 120_000 }, async () => {
  const { holdfast } = redis;
  await addSemaphores(redis, SEMAPHORES);
  const names = Array.from({ length: ELECTIONS }, (_, i) => `election-${i}`);
  for (const name of names) await holdfast.election(name).acquire({ leaseMs: 600_000 });
  const backend: Backend = { holdfast, prefix: "hf", topology: "single", servers: () => [], close: async () => {} };
  const topics = new Set(["semaphores", "elections"] as const);
  const reader = new Reader(new Set());
  const { semaphores, elections } = await reader.at(backend, { topics, locks: [], isWhole: true }, NOTHING);
  expect(elections?.map(({ row }) => row.name).toSorted()).toEqual(names.toSorted());
  expect(semaphores?.length).toBeGreaterThanOrEqual(10_000);
  expect(semaphores?.length).toBeLessThan(SEMAPHORES);
});
