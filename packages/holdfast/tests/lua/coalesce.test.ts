/** The script that grants a coalesced call, in states that take more than two clients to come about. */
import { expect, test } from "vitest";
import {
  recipesCoalesceAcquire,
  recipesCoalesceBegin,
  recipesCoalesceEnd,
  recipesCoalesceReclaim,
} from "../../src/generated/recipes-scripts.js";
import { createHoldfast } from "../../src/index.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const BASE = "hf:coalesce:{t}";
const A = "A/1/30000/1";

function send(
  { source, keys, args }: { source: string; keys: readonly string[]; args: readonly string[] },
  given: Readonly<Record<string, string | number>>,
): Promise<unknown> {
  const words = args.map((name) => String(given[name]));
  return server.redis.eval(
    source,
    keys.length,
    ...keys.map((name) => (name === "lock" ? BASE : `${BASE}:${name}`)),
    ...words,
  );
}

function acquire(args: Readonly<Record<string, string | number>>): Promise<unknown> {
  const usual = { leaseMs: 30_000, joins: 0, arrival: 0, ageUs: 0, enqueue: 1, cancel: 0, inbox: INBOX };
  return send(recipesCoalesceAcquire, { ...usual, ...args });
}

test("whoever has begun and lost its grant before it knew of that is granted again, and at once", async () => {
  const [, , arrival = 0] = (await acquire({ owner: A })) as number[];
  await server.redis.hset(`${BASE}:run`, "begun", 1, "by", A, "arrival", arrival, "covers", arrival);
  await server.redis.del(BASE);
  expect(await acquire({ owner: A, arrival })).toEqual([0, expect.any(Number), arrival]);
  expect(await server.redis.get(BASE)).toBe(A);
});

test("whoever came before a call that has begun is superseded", async () => {
  const [, , arrival = 0] = (await acquire({ owner: A })) as number[];
  await server.redis.hset(`${BASE}:run`, "begun", 1, "by", A, "arrival", arrival, "covers", arrival);
  await server.redis.del(BASE);
  expect(await acquire({ owner: "B/2/30000/1", arrival: arrival - 1 })).toEqual([
    3,
    expect.stringMatching(/^\d{16}$/),
    A,
  ]);
});

test("a call that never came to its work supersedes nobody who has not been told", async () => {
  const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
  const given = { owner: A, token, ageUs: 0, inbox: INBOX, value: "" };
  expect(await send(recipesCoalesceBegin, given)).toEqual([1, arrival, expect.any(Number)]);
  const older = { owner: "B/2/30000/1", arrival: arrival - 1 };
  expect(await acquire(older)).toEqual([3, expect.stringMatching(/^\d{16}$/), A]);
  expect(await send(recipesCoalesceEnd, { ...given, state: "unbegun" })).toBe(1);
  expect(await acquire(older)).toEqual([0, expect.any(Number), arrival - 1]);
});

test("whoever came before one that had begun is told of it, and not of a later one that never did", async () => {
  const [, first = 0, at = 0] = (await acquire({ owner: A })) as number[];
  const begun = { owner: A, token: first, ageUs: 0, inbox: INBOX };
  await send(recipesCoalesceBegin, begun);
  expect(await send(recipesCoalesceEnd, { ...begun, state: "done", value: "" })).toBe(1);
  const later = "B/2/30000/1";
  const [, second = 0] = (await acquire({ owner: later })) as number[];
  const unheard = { owner: later, token: second, ageUs: 0, inbox: INBOX };
  await send(recipesCoalesceBegin, unheard);
  expect(await send(recipesCoalesceEnd, { ...unheard, state: "unbegun" })).toBe(1);
  expect(await acquire({ owner: "C/3/30000/1", arrival: at - 1 })).toEqual([3, expect.stringMatching(/^\d{16}$/), A]);
});

test("a call that was kept from arriving came when it was made, and not before what had begun by then", async () => {
  const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
  await send(recipesCoalesceBegin, { owner: A, token, ageUs: 0, inbox: INBOX });
  await server.redis.del(BASE);
  const late = { owner: "B/2/30000/1", ageUs: 3_600_000_000 };
  expect(await acquire(late)).toEqual([3, expect.stringMatching(/^\d{16}$/), A]);
  const [outcome, second = 0, at = 0] = (await acquire({ ...late, ageUs: 1 })) as number[];
  expect(outcome).toBe(0);
  expect(at).toBeGreaterThan(arrival);
  const begin = { owner: late.owner, token: second, inbox: INBOX };
  expect(await send(recipesCoalesceBegin, { ...begin, ageUs: late.ageUs }), "granted for a late copy").toEqual([2]);
  const begun = await send(recipesCoalesceBegin, { ...begin, ageUs: 1 });
  expect(begun).toEqual([1, expect.any(Number), expect.any(Number)]);
  expect(await send(recipesCoalesceBegin, { ...begin, ageUs: late.ageUs }), "it has begun").toEqual(begun);
});

/** What the caller of a run knows of it, on a server to which nothing of it has come. */
const KNOWN = { owner: A, token: 9_000, leaseMs: 30_000, arrivalUs: 500, coversUs: 700 };
const PUT_BACK = {
  granted: A,
  at: "500",
  begun: "9000",
  by: A,
  arrival: "500",
  covers: "700",
  back: "9000",
};

async function reclaim(known: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
  const words = recipesCoalesceReclaim.args.map((name) => String({ ...KNOWN, ...known }[name]));
  const keys = recipesCoalesceReclaim.keys.map((name) =>
    name === "marker" ? "hf:lineage" : name === "lock" ? BASE : `${BASE}:${name}`,
  );
  return await server.redis.eval(recipesCoalesceReclaim.source, keys.length, ...keys, ...words);
}

async function have(holder: string | undefined, fence: number | undefined, run = {}): Promise<void> {
  if (holder !== undefined) await server.redis.set(BASE, holder, "PX", 500_000);
  if (fence !== undefined) await server.redis.set(`${BASE}:fence`, fence, "PX", 500_000);
  if (Object.keys(run).length > 0) await server.redis.hset(`${BASE}:run`, run);
}

const EARLIER = { granted: "B/2/30000/1", at: "300", begun: "8999", by: "B/2/30000/1", arrival: "300", covers: "400" };

test.each<[string, string | undefined, number | undefined, Record<string, string>, Record<string, string>]>([
  ["that the server knows nothing of", undefined, undefined, {}, { before: "0", beforeBy: "" }],
  [
    "after one that the server still has",
    "B/2/30000/1",
    8_999,
    { ...EARLIER, cancel: A },
    { before: "300", beforeBy: "B/2/30000/1" },
  ],
  [
    "that had not begun for all that the server knows",
    A,
    9_000,
    { ...EARLIER, granted: A, at: "500", cancel: "C/3/30000/1" },
    { before: "300", beforeBy: "B/2/30000/1", cancel: "C/3/30000/1" },
  ],
])("a run %s is put back by whoever has it, as begun", async (_, holder, fence, run, more) => {
  await have(holder, fence, run);
  await server.redis.zadd(`${BASE}:waiting`, 500, A);
  await server.redis.zadd(`${BASE}:joining`, 500, A, 600, "C/3/30000/1");
  for (let times = 0; times < 2; times += 1) {
    expect(await reclaim()).toBe(1);
    expect(await server.redis.hgetall(`${BASE}:run`)).toEqual({ ...PUT_BACK, ...more });
  }
  expect(await server.redis.get(BASE)).toBe(A);
  expect(await server.redis.get(`${BASE}:fence`)).toBe("9000");
  expect(await server.redis.zrange(`${BASE}:waiting`, "0", "-1")).toEqual([]);
  expect(await server.redis.zrange(`${BASE}:joining`, "0", "-1")).toEqual(["C/3/30000/1"]);
  for (const key of [BASE, `${BASE}:fence`, `${BASE}:run`]) {
    expect(await server.redis.pttl(key), key).toBeGreaterThan(10_000);
  }
});

test.each<[string, string | undefined, number]>([
  ["that a later one has followed", "B/2/30000/1", 9_001],
  ["that a later one has followed and ended", undefined, 9_001],
  ["whose token another has", "B/2/30000/1", 9_000],
])("a run %s is not put back", async (_, holder, fence) => {
  await have(holder, fence, EARLIER);
  expect(await reclaim()).toBe(0);
  expect(await server.redis.hgetall(`${BASE}:run`)).toEqual(EARLIER);
  expect(await server.redis.get(BASE)).toBe(holder ?? null);
});

test("what a run that was put back finds is kept for those of whom this server knows nothing yet", async () => {
  await reclaim();
  const end = { owner: A, token: 9_000, inbox: INBOX, value: "" };
  expect(await send(recipesCoalesceEnd, { ...end, state: "" }), "it wants the value").toBe(5);
  expect(await send(recipesCoalesceEnd, { ...end, state: "done", value: "found" })).toBe(1);
  expect(await server.redis.exists(BASE)).toBe(0);
  const joins = { owner: "B/2/30000/1", joins: 1 };
  expect(await acquire({ ...joins, arrival: 700 })).toEqual([4, "done", "found"]);
  expect(await acquire({ ...joins, arrival: 701 }), "it came later").toEqual([0, expect.any(Number), 701]);
});

test("on a server that may grant no run is put back: another may have begun there, and ended", async () => {
  const holdfast = createHoldfast({ redis: server.redis, commandTimeoutMs: 20_000 });
  await (await holdfast.mutex("any").acquire()).release();
  expect(await reclaim()).toBe(0);
  expect(await server.redis.exists(BASE)).toBe(0);
  await holdfast.close();
});
