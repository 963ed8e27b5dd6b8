/** The script that grants a coalesced call, in states that take more than two clients to come about. */
import { expect, test } from "vitest";
import {
  recipesCoalesceAcquire,
  recipesCoalesceBegin,
  recipesCoalesceEnd,
} from "../../src/generated/recipes-scripts.js";
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
  expect(await send(recipesCoalesceBegin, given)).toEqual([1]);
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
  expect(await send(recipesCoalesceBegin, { ...begin, ageUs: 1 })).toEqual([1]);
  expect(await send(recipesCoalesceBegin, { ...begin, ageUs: late.ageUs }), "it has begun").toEqual([1]);
});
