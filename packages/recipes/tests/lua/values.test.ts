/**
 * The scripts of counts, fenced values and versioned values in isolation: the state before, one call, its reply, the
 * state after.
 */
import { describe, expect, test } from "vitest";
import type { Script } from "../../../holdfast/src/core/store.js";
import { INBOX, ScriptServer } from "../../../holdfast/tests/lua/script-server.js";
import {
  recipesCounterChange,
  recipesCounterRead,
  recipesFenceSet,
  recipesVersionedRead,
  recipesVersionedWrite,
} from "../../src/generated/scripts.js";

const server = new ScriptServer();
const COUNT = "hf:counter:{t}";
const REQUEST = `${COUNT}:request:a`;
const [DATA, MARK] = ["t", "hf:fence:mapped:{t}"];
const RECORD = "hf:versioned:{t}";
const REQUESTS = `${RECORD}:requests`;
/** Timestamps in µs, far in the past and in the future. */
const [PAST, AHEAD] = [1_600_000_000_000_000, 4_000_000_000_000_000];

const KEYS: Readonly<Record<string, string>> = {
  count: COUNT,
  request: REQUEST,
  data: DATA,
  mark: MARK,
  record: RECORD,
  requests: REQUESTS,
};

async function send(script: Script, given: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
  const keys = script.keys.map((key) => KEYS[key] as string);
  const args = script.args.map((name) => {
    const value = given[name];
    if (value === undefined) throw new Error(`${script.name} needs ${name}`);
    return String(value);
  });
  return await server.redis.eval(script.source, keys.length, ...keys, ...args);
}

describe("a count", () => {
  const change = (by: number, other: Readonly<Record<string, number>> = {}): Promise<unknown> =>
    send(recipesCounterChange, { change: by, min: 0, max: 100, keepMs: 60_000, ...other });
  const state = (): Promise<(string | null)[]> => server.redis.mget(COUNT, REQUEST);

  test.each<[string, string | null, number, unknown, string | null, string | null]>([
    ["that was never put to has nothing to take", null, -1, [2], null, "-1 none"],
    ["that was never put to can be put to", null, 5, [1, 5], "5", "5 5"],
    ["can be taken down to its minimum", "3", -3, [1, 0], "0", "-3 0"],
    ["cannot be taken below its minimum, and the refusal is remembered", "3", -4, [2], "3", "-4 none"],
    ["that is below its minimum can be put to", "-3", 1, [1, -2], "-2", "1 -2"],
    ["that is below its minimum cannot be taken from", "-3", -1, [2], "-3", "-1 none"],
    ["can be put to up to its maximum", "99", 1, [1, 100], "100", "1 100"],
    ["cannot be put to beyond its maximum, and the request may be repeated", "99", 2, [4, 99], "99", null],
  ])("%s", async (_, before, by, reply, after, remembered) => {
    if (before !== null) await server.redis.set(COUNT, before);
    expect(await change(by)).toEqual(reply);
    expect(await state()).toEqual([after, remembered]);
    expect(await server.redis.pttl(COUNT)).toBe(after === null ? -2 : -1);
  });

  test.each<[string, number, number, unknown]>([
    ["-2 7", -2, 1, [1, 7]],
    ["-2 none", -2, 50, [2]],
    ["5 9", 5, 0, [1, 9]],
    ["-2 7", -3, 50, [3, -2]],
    ["-2 none", 2, 50, [3, -2]],
    ["5 9", 50, 99, [3, 5]],
  ])(
    "a known request (%s) that asks for %s gets its first reply and changes nothing",
    async (known, by, count, reply) => {
      await server.redis.set(COUNT, count);
      await server.redis.psetex(REQUEST, 30_000, known);
      for (let times = 0; times < 2; times += 1) expect(await change(by)).toEqual(reply);
      expect(await state()).toEqual([String(count), known]);
      expect(await server.redis.pttl(REQUEST), "it is not kept for longer").toBeLessThanOrEqual(30_000);
    },
  );

  test("is exact at the limits and is read unchanged", async () => {
    const most = 1_000_000_000_000_000;
    expect(await send(recipesCounterRead)).toBe(0);
    expect(await change(most, { max: most })).toEqual([1, most]);
    expect(await send(recipesCounterRead)).toBe(most);
    expect(await state()).toEqual([String(most), `${most} ${most}`]);
    await server.redis.del(REQUEST);
    expect(await change(-most - 3, { min: -most, max: most })).toEqual([1, -3]);
    expect(await send(recipesCounterRead)).toBe(-3);
  });
});

describe("a fenced value", () => {
  const write = (token: number, other: Readonly<Record<string, string | number>> = {}): Promise<unknown> =>
    send(recipesFenceSet, { lock: "the lock", token, value: "new", keepMs: 0, markMs: 0, ...other });
  const state = (): Promise<(string | null)[]> => server.redis.mget(DATA, MARK);

  test.each<[string, string | null, number, unknown, string, string | null]>([
    ["that was never written is written", null, 5, [1], "new", "5 the lock"],
    ["is written with a higher token", "4 the lock", 5, [1], "new", "5 the lock"],
    ["is written with the same token again", "5 the lock", 5, [1], "new", "5 the lock"],
    ["is not written with a lower token", "6 the lock", 5, [2, 6], "old", "6 the lock"],
    ["of another lock is not written if its token is lower", "4 another", 5, [3, 4, "another"], "old", "4 another"],
    ["of another lock is not written if its token is higher", "6 the lo", 5, [3, 6, "the lo"], "old", "6 the lo"],
    [
      "is not written with a token that is lower by one, however large they are",
      "9000000000000001 the lock",
      9_000_000_000_000_000,
      [2, 9_000_000_000_000_001],
      "old",
      "9000000000000001 the lock",
    ],
  ])("%s", async (_, before, token, reply, data, mark) => {
    await server.redis.set(DATA, "old");
    if (before !== null) await server.redis.set(MARK, before);
    for (let times = 0; times < 2; times += 1) expect(await write(token)).toEqual(reply);
    expect(await state()).toEqual([data, mark]);
  });

  test("is kept for `keepMs`, and its mark for `markMs`", async () => {
    await write(5, { keepMs: 40_000, markMs: 90_000 });
    const [value, mark] = [await server.redis.pttl(DATA), await server.redis.pttl(MARK)];
    expect([value > 30_000 && value <= 40_000, mark > 80_000 && mark <= 90_000]).toEqual([true, true]);
    await write(4, { keepMs: 10, markMs: 10 });
    expect(await server.redis.pttl(DATA), "a refused write leaves it").toBeGreaterThan(30_000);
    await write(5);
    expect([await server.redis.pttl(DATA), await server.redis.pttl(MARK)]).toEqual([-1, -1]);
  });

  test("replaces a value of any type", async () => {
    await server.redis.hset(DATA, "a", "b");
    expect(await write(5)).toEqual([1]);
    expect(await server.redis.get(DATA)).toBe("new");
  });
});

describe("a versioned value", () => {
  const write = (given: Readonly<Record<string, string | number>>): Promise<unknown> =>
    send(recipesVersionedWrite, {
      request: "r1",
      rememberMs: 20_000,
      buryMs: 0,
      value: "new",
      channel: `${INBOX}A`,
      ...given,
    });
  const record = (): Promise<Record<string, string>> => server.redis.hgetall(RECORD);
  const have = (version: number, value?: string): Promise<unknown> =>
    server.redis.hset(RECORD, { version, ...(value === undefined ? {} : { value }) });

  test.each<[string, () => Promise<unknown>, object, unknown]>([
    ["another version", () => have(PAST, "old"), { version: PAST - 1 }, [2, PAST, "old"]],
    ["a version, and the writer expects none", () => have(PAST, "old"), { version: 0 }, [2, PAST, "old"]],
    ["no version, and the writer has seen one", async () => {}, { version: PAST }, [2, 0]],
    ["been deleted, and the writer has seen a value", () => have(PAST), { version: PAST - 1 }, [2, PAST]],
    ["been deleted, and the writer has seen nothing", () => have(PAST), { version: 0 }, [2, PAST]],
    [
      "another version, and is to be deleted",
      () => have(PAST, "old"),
      { version: PAST - 1, buryMs: 9_000 },
      [2, PAST, "old"],
    ],
    ["been deleted, and is to be deleted", () => have(PAST), { version: PAST, buryMs: 9_000 }, [1, PAST]],
    ["no version, and is to be deleted", async () => {}, { version: -1, buryMs: 9_000 }, [1, 0]],
  ])("does not change if it has %s", async (_, prepare, given, reply) => {
    await prepare();
    const before = await record();
    for (let times = 0; times < 2; times += 1) expect(await write({ ...given })).toEqual(reply);
    expect(await record()).toEqual(before);
    expect(await server.redis.exists(REQUESTS)).toBe(0);
    expect(await server.messages()).toEqual([]);
  });

  test.each<[string, number, (now: number) => number]>([
    ["the time", PAST, (now) => now],
    ["one more than the last, if the clock is behind", AHEAD, () => AHEAD + 1],
  ])("that is written gets as its version %s, and subscribers are notified only once", async (_, version, next) => {
    await have(version, "old");
    const [, written] = (await write({ version })) as [number, number];
    const nowUs = await server.nowUs();
    expect(written).toBeGreaterThan(version);
    expect(written).toBeLessThanOrEqual(next(nowUs));
    expect(await record()).toEqual({ version: String(written), value: "new" });
    expect(await write({ version }), "sent again").toEqual([1, written]);
    expect(await server.messages()).toEqual([`A ${written}`]);
    // The first request, repeated after a later write, still gets its own reply.
    const [, later] = (await write({ version: written, request: "r2", value: "later" })) as [number, number];
    expect(await write({ version })).toEqual([1, written]);
    expect(await record()).toEqual({ version: String(later), value: "later" });
  });

  test("that is deleted keeps its version for a while, and its successor gets a higher version", async () => {
    await have(AHEAD, "old");
    expect(await write({ version: -1, buryMs: 50_000 })).toEqual([1, AHEAD + 1]);
    expect(await record()).toEqual({ version: String(AHEAD + 1) });
    expect(await send(recipesVersionedRead)).toEqual([1, AHEAD + 1]);
    expect(await server.redis.pttl(RECORD)).toBeGreaterThan(40_000);
    expect(await write({ version: AHEAD + 1, request: "r2" })).toEqual([1, AHEAD + 2]);
    expect(await send(recipesVersionedRead)).toEqual([1, AHEAD + 2, "new"]);
    expect(await server.redis.pttl(RECORD)).toBe(-1);
    // The deletion, sent again, gets its first reply and deletes nothing.
    expect(await write({ version: -1, buryMs: 50_000 })).toEqual([1, AHEAD + 1]);
    expect(await send(recipesVersionedRead)).toEqual([1, AHEAD + 2, "new"]);
  });

  test("forgets old requests, but not those that another client remembers for longer", async () => {
    const nowUs = await server.nowUs();
    await server.redis.zadd(REQUESTS, nowUs - 30_000_000, "half a minute ago", nowUs - 90_000_000, "long ago");
    await server.redis.pexpire(REQUESTS, 50_000);
    await write({ version: 0, request: "short" });
    expect(await server.redis.zcard(REQUESTS)).toBe(3);
    expect(await server.redis.pttl(REQUESTS)).toBeGreaterThan(40_000);
    await write({ version: -1, request: "longer", rememberMs: 60_000 });
    expect(await server.redis.zrange(REQUESTS, "0", "-1")).toEqual(["half a minute ago", "short", "longer"]);
    expect(await server.redis.pttl(REQUESTS)).toBeGreaterThan(50_000);
    await server.redis.pexpire(REQUESTS, 15_000);
    await write({ version: -1, request: "short again" });
    expect(await server.redis.zrange(REQUESTS, "0", "-1")).toEqual(["short", "longer", "short again"]);
    expect(await server.redis.pttl(REQUESTS)).toBeGreaterThan(15_000);
  });
});
