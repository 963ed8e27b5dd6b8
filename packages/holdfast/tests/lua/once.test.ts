/** The scripts of `once` alone, where an attempt is not the one that has the call, or has not begun to work. */
import { expect, test } from "vitest";
import type { Script } from "../../src/core/script.js";
import {
  recipesOnceExtend,
  recipesOnceInspect,
  recipesOnceLeave,
  recipesOnceSave,
} from "../../src/generated/recipes-scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const RECORD = "hf:once:{/pay}";
const [OWN, OTHER] = ["A/1/30000/1", "B/2/30000/1"];
/** Moments that are far from now, in µs. */
const [PAST, AHEAD] = [1_600_000_000_000_000, 4_000_000_000_000_000];
const RUNNING = {
  print: "p",
  state: "running",
  owner: OWN,
  until: String(AHEAD),
  token: "9",
  attempt: "1",
  first: "1",
  since: "2",
};
const KEPT_MS = 500_000;

type Record = Readonly<{ [field: string]: string }>;

async function have(record: Record): Promise<void> {
  await server.redis.del(RECORD);
  await server.redis.hset(RECORD, record);
  await server.redis.pexpire(RECORD, KEPT_MS);
}

async function send(script: Script): Promise<unknown> {
  const args: Record = { owner: OWN, leaseMs: "30000", keepMs: "1000000", channel: `${INBOX}A`, data: "half" };
  return await server.redis.eval(script.source, 1, RECORD, ...script.args.map((name) => args[name] ?? ""));
}

/** What is not the attempt's any more, or never was. */
const NOT_ITS_OWN: readonly [string, Record][] = [
  ["that another has taken over", { ...RUNNING, owner: OTHER, attempt: "2" }],
  ["that has ended", { ...RUNNING, state: "done", value: "v" }],
  ["that was given back", { ...RUNNING, state: "released" }],
  ["that nobody may begin", { ...RUNNING, state: "blocked", value: "why" }],
];

test.each(NOT_ITS_OWN)("a call %s is not kept, saved, or left by an attempt that is late", async (_, record) => {
  await have(record);
  for (const script of [recipesOnceExtend, recipesOnceSave, recipesOnceLeave]) {
    expect(await send(script), script.name).toEqual([2]);
    expect(await server.redis.hgetall(RECORD)).toEqual(record);
    expect(await server.redis.pttl(RECORD)).toBeLessThanOrEqual(KEPT_MS);
  }
  expect(await server.messages()).toEqual([]);
});

test("of a call that is forgotten there is nothing to keep, save or leave", async () => {
  expect(await send(recipesOnceExtend)).toEqual([3]);
  expect(await send(recipesOnceSave)).toEqual([2]);
  expect(await send(recipesOnceLeave)).toEqual([2]);
  expect(await server.redis.exists(RECORD)).toBe(0);
});

test("a lease begins anew, with the time of its record, and does not end sooner than before", async () => {
  await have({ ...RUNNING, until: String(PAST) });
  expect(await send(recipesOnceExtend)).toEqual([1]);
  const endsUs = Number(await server.redis.hget(RECORD, "until"));
  expect(endsUs).toBeLessThanOrEqual((await server.nowUs()) + 30_000_000);
  expect(endsUs).toBeGreaterThan((await server.nowUs()) + 10_000_000);
  expect(await server.redis.pttl(RECORD)).toBeGreaterThan(KEPT_MS);
  await have(RUNNING);
  expect(await send(recipesOnceExtend)).toEqual([1]);
  expect(await server.redis.hgetall(RECORD)).toEqual(RUNNING);
});

test("a first attempt that did nothing leaves nothing, and whoever waits is told", async () => {
  await have(RUNNING);
  expect(await send(recipesOnceLeave)).toEqual([1]);
  expect(await server.redis.exists(RECORD)).toBe(0);
  expect(await server.messages()).toEqual(["A released"]);
});

test.each<[string, Record]>([
  ["a later attempt", { attempt: "3" }],
  ["an attempt after which something is saved", { attempt: "1", saved: "half" }],
])("%s that did nothing is not counted, and what was before it stays", async (_, before) => {
  await have({ ...RUNNING, ...before });
  expect(await send(recipesOnceLeave)).toEqual([1]);
  const attempt = String(Number(before.attempt) - 1);
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...RUNNING, ...before, state: "released", attempt });
  expect(await server.messages()).toEqual(["A released"]);
});

test("inspect says how long a lease lasts while it runs, and when it ended after that", async () => {
  expect(await send(recipesOnceInspect)).toEqual([0]);
  await have(RUNNING);
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, expect.any(Number), 0, "running", OWN]);
  expect(((await send(recipesOnceInspect)) as number[])[5]).toBeGreaterThan(1_000_000);
  await have({ ...RUNNING, until: String(PAST) });
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, 0, 0, "running", OWN]);
  await have({ ...RUNNING, state: "done", ended: "5" });
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, 0, 5, "done", OWN]);
});
