/** The pages of one kind, with more locks of another kind than the console lists. */
import { expect, it } from "vitest";
import type { Viewer } from "../src/access.js";
import type { Backend } from "../src/backend.js";
import { Reader } from "../src/reader.js";
import { NOTHING } from "../src/snapshot.js";
import { Visibility } from "../src/visibility.js";
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
  expect(elections?.elections.map(({ row }) => row.name).toSorted()).toEqual(names.toSorted());
  expect(elections).toMatchObject({ isCut: false });
  expect(semaphores?.semaphores.length).toBeGreaterThanOrEqual(10_000);
  expect(semaphores?.semaphores.length).toBeLessThan(SEMAPHORES);
  expect(semaphores).toMatchObject({ isCut: true });
  // A visitor who may see only a few of them must learn it, too.
  const [one] = semaphores?.semaphores ?? [];
  const viewer = {
    seesAll: false,
    may: async (_: string, name: string) => name === one?.row.name,
  } as unknown as Viewer;
  const seen = semaphores && (await new Visibility(viewer).semaphores(semaphores));
  expect(seen).toMatchObject({ semaphores: [one], isCut: true });
});
