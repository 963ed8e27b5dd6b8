/** The search of the Locks page through more locks than the stream follows. */
import { expect, it } from "vitest";
import type { LockRow } from "../../src/api.js";
import { matchText, type ReadPage, type Search, search, UNREAD, unreachableText } from "../../src/ui/search.js";
import { rowOf } from "../../src/views.js";
import { entry } from "../entries.js";

const named = (name: string): LockRow => rowOf(entry({ name }), { redact: new Set(), nowMs: 0 }, [], undefined);

/** Pages of 10,000 locks each, of which the given ones match. */
const pagesOf =
  (...pages: readonly (readonly string[])[]): ReadPage =>
  async (cursor) => {
    const at = Number(cursor);
    const nextCursor = at + 1 < pages.length ? String(at + 1) : null;
    return { rows: (pages[at] ?? []).map(named), lockCount: 10_000, nextCursor, unreachable: 0 };
  };

async function stepsOf(readPage: ReadPage): Promise<Search[]> {
  const steps: Search[] = [];
  for await (const step of search(readPage)) steps.push(step);
  return steps;
}

const textOf = (found: Search): string => matchText(found.rows.length, found);

it("a lock on the last page is found, and until then the page never says that there is none", async () => {
  const steps = await stepsOf(pagesOf([], [], ["late"]));
  expect([UNREAD, ...steps].map(textOf)).toEqual([
    "Reading …",
    "10,000 locks read so far",
    "20,000 locks read so far",
    "1 of 30,000 locks",
  ]);
  expect(steps.map(({ isReading }) => isReading)).toEqual([true, true, false]);
});

it("locks are shown as soon as they are found, each once", async () => {
  const steps = await stepsOf(pagesOf(["a"], ["a", "b"], []));
  expect(steps.map(({ rows }) => rows.map(({ name }) => name))).toEqual([["a"], ["a", "b"], ["a", "b"]]);
  expect(steps.map(textOf)).toEqual([
    "1 found, 10,000 locks read so far",
    "2 found, 20,000 locks read so far",
    "2 of 30,000 locks",
  ]);
});

it("that there is none is said only after all locks were read", async () => {
  const steps = await stepsOf(pagesOf([], []));
  expect(steps.map(textOf)).toEqual(["10,000 locks read so far", "0 of 20,000 locks"]);
});

it("a search ends at 1,000 matches, and says that there are more", async () => {
  const many = (from: number): string[] => Array.from({ length: 600 }, (_, i) => String(from + i));
  const steps = await stepsOf(pagesOf(many(0), many(600), many(1_200)));
  expect(steps.map(({ isCut }) => isCut)).toEqual([false, true]);
  expect(textOf(steps[1] ?? UNREAD)).toBe("1,200+ of 20,000+ locks");
  const whole = await stepsOf(pagesOf(many(0), many(600)));
  expect(whole.map(textOf).at(-1)).toBe("1,200 of 20,000 locks");
});

it("a visitor who may not see all locks is not told how many there are", async () => {
  const steps = await stepsOf(async (cursor) => ({ ...(await pagesOf([], ["own"], [])(cursor)), lockCount: null }));
  expect(steps.map(textOf)).toEqual(["Reading …", "1 found so far", "1 lock matches"]);
});

it("a search says how many servers did not reply, so that their locks are missing", async () => {
  const without = (unreachable: number) =>
    stepsOf(async (cursor) => ({ ...(await pagesOf(["a"])(cursor)), unreachable }));
  const texts = await Promise.all([0, 1, 2].map(async (n) => (await without(n)).map(unreachableText)));
  expect(texts).toEqual([
    [undefined],
    ["1 server did not reply: its locks are missing."],
    ["2 servers did not reply: their locks are missing."],
  ]);
});
