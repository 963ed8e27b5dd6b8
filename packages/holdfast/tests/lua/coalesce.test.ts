/** The script that grants a coalesced call, in states that take more than two clients to come about. */
import { expect, test } from "vitest";
import { recipesCoalesceAcquire } from "../../src/generated/recipes-scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const BASE = "hf:coalesce:{t}";
const A = "A/1/30000/1";

function acquire(args: Readonly<Record<string, string | number>>): Promise<unknown> {
  const { source, keys, args: names } = recipesCoalesceAcquire;
  const given: Readonly<Record<string, string | number>> = {
    ...{ leaseMs: 30_000, joins: 0, arrival: 0, enqueue: 1, cancel: 0, inbox: INBOX },
    ...args,
  };
  const words = names.map((name) => String(given[name]));
  return server.redis.eval(
    source,
    keys.length,
    ...keys.map((name) => (name === "lock" ? BASE : `${BASE}:${name}`)),
    ...words,
  );
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
  expect(await acquire({ owner: "B/2/30000/1", arrival: arrival - 1 })).toEqual([3, A]);
});
