/** The scripts of coalesced calls in isolation, including states that need more than two clients. */

import { createHoldfast } from "holdfast";
import { describe, expect, test } from "vitest";
import { INBOX, ScriptServer } from "../../../holdfast/tests/lua/script-server.js";
import {
  recipesCoalesceAcquire,
  recipesCoalesceBegin,
  recipesCoalesceEnd,
  recipesCoalesceExtend,
  recipesCoalesceHeed,
  recipesCoalesceInspect,
  recipesCoalesceLeave,
  recipesCoalesceReclaim,
} from "../../src/generated/scripts.js";

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

test("a caller that began but lost its grant before the reply is granted again immediately", async () => {
  const [, , arrival = 0] = (await acquire({ owner: A })) as number[];
  await server.redis.hset(`${BASE}:run`, "begun", 1, "by", A, "arrival", arrival, "covers", arrival);
  await server.redis.del(BASE);
  expect(await acquire({ owner: A, arrival })).toEqual([0, expect.any(Number), arrival]);
  expect(await server.redis.get(BASE)).toBe(A);
});

test("a caller that arrived before a run that has begun is superseded", async () => {
  const [, , arrival = 0] = (await acquire({ owner: A })) as number[];
  await server.redis.hset(`${BASE}:run`, "begun", 1, "by", A, "arrival", arrival, "covers", arrival);
  await server.redis.del(BASE);
  expect(await acquire({ owner: "B/2/30000/1", arrival: arrival - 1 })).toEqual([
    3,
    expect.stringMatching(/^\d{16}$/),
    A,
  ]);
});

test("a run that ends before its work begins no longer supersedes older callers", async () => {
  const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
  const given = { owner: A, token, ageUs: 0, inbox: INBOX, value: "" };
  expect(await send(recipesCoalesceBegin, given)).toEqual([1, arrival, expect.any(Number)]);
  const older = { owner: "B/2/30000/1", arrival: arrival - 1 };
  expect(await acquire(older)).toEqual([3, expect.stringMatching(/^\d{16}$/), A]);
  expect(await send(recipesCoalesceEnd, { ...given, state: "unbegun" })).toBe(1);
  expect(await acquire(older)).toEqual([0, expect.any(Number), arrival - 1]);
});

test("an older caller is superseded by the run that began its work, not by a later unbegun one", async () => {
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

test("a delayed request counts from when it was made, so a run that began later supersedes it", async () => {
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

const [B, C] = ["B/2/30000/1", "C/3/30000/1"];
const RUN = `${BASE}:run`;
const has = (key: string): Promise<string[]> => server.redis.zrange(key, "0", "-1");

/** A holds the grant and has begun its run. */
async function running(): Promise<{ owner: string; token: number; arrival: number; inbox: string }> {
  const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
  await send(recipesCoalesceBegin, { owner: A, token, ageUs: 0, inbox: INBOX });
  return { owner: A, token, arrival, inbox: INBOX };
}

const end = (given: object): Promise<unknown> =>
  send(recipesCoalesceEnd, { inbox: INBOX, state: "", value: "", ...given });
const leave = (owner: string): Promise<unknown> => send(recipesCoalesceLeave, { owner, inbox: INBOX });

describe("acquire", () => {
  test("a repeated request gets the same reply, granted or not, and never shortens the lease", async () => {
    const granted = await acquire({ owner: A });
    expect(await acquire({ owner: A, leaseMs: 100 })).toEqual(granted);
    expect(await server.redis.pttl(BASE)).toBeGreaterThan(20_000);
    const [, , , arrival] = (await acquire({ owner: B })) as number[];
    expect(await acquire({ owner: B })).toEqual([1, expect.any(Number), expect.any(Number), arrival]);
    expect(await has(`${BASE}:waiting`)).toEqual([B]);
  });

  test("a caller that does not wait leaves nothing behind", async () => {
    await acquire({ owner: A });
    expect(await acquire({ owner: B, enqueue: 0 })).toEqual([
      2,
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
    ]);
    expect(await acquire({ owner: C, enqueue: 0, joins: 1 })).toEqual([
      2,
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
    ]);
    expect(await server.redis.exists(`${BASE}:waiting`, `${BASE}:joining`)).toBe(0);
  });

  test("each arrival is later than all previous ones, even if the clock is behind", async () => {
    const ahead = 4_000_000_000_000_000;
    await running();
    await server.redis.hset(RUN, "covers", ahead);
    expect(await acquire({ owner: B })).toEqual([1, expect.any(Number), expect.any(Number), ahead + 1]);
    expect(await acquire({ owner: C, joins: 1 })).toEqual([1, expect.any(Number), expect.any(Number), ahead + 2]);
  });

  test("the running call is asked once to end, by a caller that arrived later", async () => {
    const { arrival } = await running();
    await acquire({ owner: C, arrival: arrival + 5, cancel: 1 });
    await acquire({ owner: B, arrival: arrival + 7, cancel: 1 });
    expect(await server.redis.hget(RUN, "cancel")).toBe(C);
    expect(await server.messages()).toEqual(["A ~1"]);
  });
});

describe("begin", () => {
  test("notifies the callers that arrived earlier and removes those without a subscriber", async () => {
    const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
    for (const [at, owner] of [B, C, "B/4/30000/1"].entries()) {
      await server.redis.zadd(`${BASE}:waiting`, arrival - 1 + at * at, owner);
    }
    const begin = { owner: A, token, ageUs: 0, inbox: INBOX };
    const begun = await send(recipesCoalesceBegin, begin);
    expect(begun).toEqual([1, arrival, expect.any(Number)]);
    expect(await has(`${BASE}:waiting`)).toEqual([B, "B/4/30000/1"]);
    expect(await send(recipesCoalesceBegin, begin)).toEqual(begun);
    expect(await server.messages()).toEqual(["B ~2"]);
  });

  test("a run does not begin under another caller's grant or an earlier token", async () => {
    const [, token = 0] = (await acquire({ owner: A })) as number[];
    expect(await send(recipesCoalesceBegin, { owner: B, token, ageUs: 0, inbox: INBOX })).toEqual([2]);
    expect(await send(recipesCoalesceBegin, { owner: A, token: token - 1, ageUs: 0, inbox: INBOX })).toEqual([2]);
    expect(await server.redis.hexists(RUN, "begun")).toBe(0);
  });
});

describe("end", () => {
  test("the newest subscribed waiter is granted, and a repeated end takes nothing from it", async () => {
    const run = await running();
    await acquire({ owner: B });
    await acquire({ owner: C });
    expect(await end(run)).toBe(1);
    expect(await server.redis.get(BASE)).toBe(B);
    expect(await end(run)).toBe(3);
    expect(await server.redis.get(BASE)).toBe(B);
    const token = await server.redis.get(`${BASE}:fence`);
    expect(await server.messages()).toEqual([`B +2 ${token} ${token}`]);
  });

  test("without waiters the lock is free, and a repeated end reports that", async () => {
    const run = await running();
    expect(await end(run)).toBe(1);
    expect(await server.redis.exists(BASE)).toBe(0);
    expect(await end(run)).toBe(2);
    await server.redis.flushall();
    expect(await end(run)).toBe(4);
  });

  test("the value is requested if callers joined, and goes only to those that arrived before the run began", async () => {
    const [, token = 0, arrival = 0] = (await acquire({ owner: A })) as number[];
    await acquire({ owner: B, joins: 1 });
    await send(recipesCoalesceBegin, { owner: A, token, ageUs: 0, inbox: INBOX });
    await acquire({ owner: C, joins: 1 });
    const run = { owner: A, token, arrival };
    expect(await end(run)).toBe(5);
    expect(await server.redis.get(BASE)).toBe(A);
    expect(await server.messages()).toEqual([]);
    expect(await end({ ...run, state: "done", value: "v" })).toBe(1);
    expect(await server.messages()).toEqual(["B ~2"]);
    expect(await acquire({ owner: B, joins: 1, arrival: arrival + 1 })).toEqual([4, "done", "v"]);
    expect(await acquire({ owner: C, joins: 1 })).toEqual([0, expect.any(Number), expect.any(Number)]);
  });

  test("joined callers get nothing from a superseded run and keep waiting", async () => {
    const [, token = 0] = (await acquire({ owner: A })) as number[];
    await acquire({ owner: B, joins: 1 });
    await send(recipesCoalesceBegin, { owner: A, token, ageUs: 0, inbox: INBOX });
    expect(await end({ owner: A, token, state: "superseded" })).toBe(1);
    expect(await server.redis.get(BASE)).toBe(B);
    expect(await server.redis.hexists(RUN, "covered")).toBe(0);
  });
});

describe("leave", () => {
  test("a waiter is removed; a caller that neither waits nor holds changes nothing", async () => {
    await running();
    await acquire({ owner: B });
    expect(await leave(B)).toBe(1);
    expect(await leave(B)).toBe(0);
    expect(await server.redis.get(BASE)).toBe(A);
    expect(await server.redis.exists(`${BASE}:waiting`)).toBe(0);
  });

  test("a grant that the leaving caller already has goes to the next waiter", async () => {
    await acquire({ owner: A });
    await acquire({ owner: B });
    expect(await leave(A)).toBe(2);
    expect(await server.redis.get(BASE)).toBe(B);
    expect(await leave(B)).toBe(2);
    expect(await server.redis.exists(BASE)).toBe(0);
  });
});

describe("extend", () => {
  test("the lease is renewed, never shortened, and the run's record outlives it", async () => {
    const run = await running();
    expect(await send(recipesCoalesceExtend, { ...run, leaseMs: 900_000 })).toBe(1);
    expect(await send(recipesCoalesceExtend, { ...run, leaseMs: 100 })).toBe(1);
    expect(await server.redis.pttl(BASE)).toBeGreaterThan(800_000);
    for (const key of [RUN, `${BASE}:fence`]) expect(await server.redis.pttl(key)).toBeGreaterThan(1_400_000);
  });

  test("the reply says whether an ended grant was followed by another one", async () => {
    const run = await running();
    expect(await send(recipesCoalesceExtend, { ...run, token: run.token - 1, leaseMs: 1_000 })).toBe(3);
    await server.redis.del(BASE);
    expect(await send(recipesCoalesceExtend, { ...run, leaseMs: 1_000 })).toBe(2);
    await acquire({ owner: B });
    expect(await send(recipesCoalesceExtend, { ...run, leaseMs: 1_000 })).toBe(3);
    await server.redis.flushall();
    expect(await send(recipesCoalesceExtend, { ...run, leaseMs: 1_000 })).toBe(4);
  });
});

test("heed: the running caller learns which caller wants it to end; no other caller does", async () => {
  const { arrival } = await running();
  expect(await send(recipesCoalesceHeed, { owner: A })).toEqual([0]);
  await acquire({ owner: B, arrival: arrival + 5, cancel: 1 });
  expect(await send(recipesCoalesceHeed, { owner: A })).toEqual([1, B]);
  expect(await send(recipesCoalesceHeed, { owner: B })).toEqual([0]);
  await leave(A);
  expect(await send(recipesCoalesceHeed, { owner: B }), "that was for the one before").toEqual([0]);
});

test("inspect: lists the running caller and the waiters, the next one first", async () => {
  expect(await send(recipesCoalesceInspect, { most: 5 })).toEqual([0, -2, 0, 0]);
  const { token } = await running();
  const [second, joins] = ["B/4/30000/1", "B/5/30000/1"];
  await acquire({ owner: B });
  await acquire({ owner: second });
  await acquire({ owner: joins, joins: 1 });
  expect(await send(recipesCoalesceInspect, { most: 5 })).toEqual([
    1,
    expect.any(Number),
    token,
    3,
    A,
    second,
    B,
    joins,
  ]);
  expect(await send(recipesCoalesceInspect, { most: 1 })).toEqual([1, expect.any(Number), token, 3, A, second, joins]);
});

/** What the caller knows about its run, for a server that knows nothing about it. */
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
  if (Object.keys(run).length > 0) await server.redis.hset(RUN, run);
}

const EARLIER = { granted: B, at: "300", begun: "8999", by: B, arrival: "300", covers: "400" };

test.each<[string, string | undefined, number | undefined, Record<string, string>, Record<string, string>]>([
  ["that the server does not know", undefined, undefined, {}, { before: "0", beforeBy: "" }],
  [
    "after an earlier run that the server still has",
    B,
    8_999,
    { ...EARLIER, cancel: A },
    { before: "300", beforeBy: B },
  ],
  [
    "that had not begun according to the server",
    A,
    9_000,
    { ...EARLIER, granted: A, at: "500", cancel: C },
    { before: "300", beforeBy: B, cancel: C },
  ],
])("a run %s is restored by its caller as begun", async (_, holder, fence, run, more) => {
  await have(holder, fence, run);
  await server.redis.zadd(`${BASE}:waiting`, 500, A);
  await server.redis.zadd(`${BASE}:joining`, 500, A, 600, C);
  for (let times = 0; times < 2; times += 1) {
    expect(await reclaim()).toBe(1);
    expect(await server.redis.hgetall(RUN)).toEqual({ ...PUT_BACK, ...more });
  }
  expect(await server.redis.get(BASE)).toBe(A);
  expect(await server.redis.get(`${BASE}:fence`)).toBe("9000");
  expect(await has(`${BASE}:waiting`)).toEqual([]);
  expect(await has(`${BASE}:joining`)).toEqual([C]);
  for (const key of [BASE, `${BASE}:fence`, RUN]) {
    expect(await server.redis.pttl(key), key).toBeGreaterThan(10_000);
  }
});

test.each<[string, string | undefined, number]>([
  ["followed by a later run", B, 9_001],
  ["followed by a later run that has ended", undefined, 9_001],
  ["whose token another owner has", B, 9_000],
])("a run %s is not restored", async (_, holder, fence) => {
  await have(holder, fence, EARLIER);
  expect(await reclaim()).toBe(0);
  expect(await server.redis.hgetall(RUN)).toEqual(EARLIER);
  expect(await server.redis.get(BASE)).toBe(holder ?? null);
});

test("the result of a restored run is kept for callers that this server does not know yet", async () => {
  await reclaim();
  const run = { owner: A, token: 9_000 };
  expect(await end(run), "it wants the value").toBe(5);
  expect(await end({ ...run, state: "done", value: "found" })).toBe(1);
  expect(await server.redis.exists(BASE)).toBe(0);
  const joins = { owner: B, joins: 1 };
  expect(await acquire({ ...joins, arrival: 700 })).toEqual([4, "done", "found"]);
  expect(await acquire({ ...joins, arrival: 701 }), "it came later").toEqual([0, expect.any(Number), 701]);
});

test("no run is restored on a server that may grant, because another run may have ended there", async () => {
  const holdfast = createHoldfast({ redis: server.redis, commandTimeoutMs: 20_000 });
  await (await holdfast.mutex("any").acquire()).release();
  expect(await reclaim()).toBe(0);
  expect(await server.redis.exists(BASE)).toBe(0);
  await holdfast.close();
});
