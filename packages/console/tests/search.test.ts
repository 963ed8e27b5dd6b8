/** A filter searches all locks, not only those on the first page. */
import { beforeAll, expect, it } from "vitest";
import { addLocks } from "./many-locks.js";
import { type Answer, redisScene, startConsole } from "./scene.js";

const redis = redisScene();
const LOCKS = 3_000;
/** The server lists locks in an order of its own, so no name is known to come late. */
const MOST_ON_A_PAGE = 1_000;

interface Row {
  readonly name: string;
}

beforeAll(async () => {
  await addLocks(redis, LOCKS, "blue:");
});

const namesIn = ({ json }: Answer): string[] => json.rows.map(({ name }: Row) => name);

/** A name that the first page does not have. */
async function lateName(get: (path: string) => Promise<Answer>): Promise<string> {
  const early = new Set(namesIn(await get(`api/locks?limit=${MOST_ON_A_PAGE}`)));
  const names = Array.from({ length: LOCKS }, (_, i) => `blue:${i + 1}`);
  // The name must not be part of another one.
  return names.find((name) => name.length === "blue:1234".length && !early.has(name)) ?? "";
}

it("one request finds a lock that is not on the first page", async () => {
  const { get } = await startConsole({ holdfast: redis.holdfast });
  const name = await lateName(get);
  expect(name).not.toBe("");
  const answer = await get(`api/locks?q=name:${name}&limit=${MOST_ON_A_PAGE}`);
  expect(namesIn(answer)).toEqual([name]);
  expect(answer.json).toMatchObject({ nextCursor: null, lockCount: LOCKS + 1 });
});

it("pages with a filter have about as many rows as requested, and together they have every match", async () => {
  const { get } = await startConsole({ holdfast: redis.holdfast });
  const names: string[] = [];
  let lockCount = 0;
  let cursor: string | null = "";
  while (cursor !== null) {
    const answer: Answer = await get(`api/locks?q=name:blue:1&limit=100&cursor=${cursor}`);
    const found = namesIn(answer);
    if (answer.json.nextCursor !== null) expect(found.length).toBeGreaterThanOrEqual(100);
    expect(found.length).toBeLessThan(200);
    names.push(...found);
    lockCount += answer.json.lockCount;
    cursor = answer.json.nextCursor;
  }
  // 1, 10 to 19, 100 to 199, and 1000 to 1999.
  expect(new Set(names).size).toBe(1_111);
  expect(names.every((name) => name.startsWith("blue:1"))).toBe(true);
  expect(lockCount).toBeGreaterThanOrEqual(LOCKS + 1);
});

it("a visitor finds only locks that it may see, and is not told how many there are", async () => {
  await redis.holdfast.mutex("red:only").acquire({ leaseMs: 600_000 });
  const { ask } = await startConsole({
    holdfast: redis.holdfast,
    authorize: (_, __, name) => (name === undefined || name.startsWith("red:") ? { who: "red@example" } : false),
  });
  const own = await ask("api/locks?q=only");
  expect(namesIn(own)).toEqual(["red:only"]);
  expect(own.json).toMatchObject({ nextCursor: null, lockCount: null });
  // Matches that it may not see would end the page early if they counted.
  const foreign = await ask("api/locks?q=name:blue:7&limit=10");
  expect(foreign.json).toMatchObject({ rows: [], nextCursor: null, lockCount: null });
});
