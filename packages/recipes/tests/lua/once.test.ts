/** The scripts of `once` in isolation, for attempts that do not own the call or have not begun to work. */

import { createHoldfast } from "holdfast";
import { expect, test } from "vitest";
import type { Script } from "../../../holdfast/src/core/store.js";
import { INBOX, ScriptServer } from "../../../holdfast/tests/lua/script-server.js";
import {
  recipesOnceBegin,
  recipesOnceExtend,
  recipesOnceInspect,
  recipesOnceLeave,
  recipesOnceReclaim,
  recipesOnceResolve,
  recipesOnceSave,
  recipesOnceSettle,
} from "../../src/generated/scripts.js";

const server = new ScriptServer();
const RECORD = "hf:once:{/pay}";
const [OWN, OTHER] = ["A/1/30000/1", "B/2/30000/1"];
/** Timestamps in µs, far in the past and in the future. */
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

/** Records that the attempt of `OWN` no longer owns, or never did. */
const NOT_ITS_OWN: readonly [string, Record][] = [
  ["that another owner has taken over", { ...RUNNING, owner: OTHER, attempt: "2" }],
  ["that has ended", { ...RUNNING, state: "done", value: "v" }],
  ["that was released", { ...RUNNING, state: "released" }],
  ["that is blocked", { ...RUNNING, state: "blocked", value: "why" }],
];

test.each(NOT_ITS_OWN)("a call %s is not extended, saved, or left by a late attempt", async (_, record) => {
  await have(record);
  for (const script of [recipesOnceExtend, recipesOnceSave, recipesOnceLeave]) {
    expect(await send(script), script.name).toEqual([2]);
    expect(await server.redis.hgetall(RECORD)).toEqual(record);
    expect(await server.redis.pttl(RECORD)).toBeLessThanOrEqual(KEPT_MS);
  }
  expect(await server.messages()).toEqual([]);
});

test("a forgotten call cannot be extended, saved, or left", async () => {
  expect(await send(recipesOnceExtend)).toEqual([3]);
  expect(await send(recipesOnceSave)).toEqual([2]);
  expect(await send(recipesOnceLeave)).toEqual([2]);
  expect(await server.redis.exists(RECORD)).toBe(0);
});

test("a lease and its record are extended, never shortened", async () => {
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

test("a first attempt that did nothing leaves no record, and waiters are notified", async () => {
  await have(RUNNING);
  expect(await send(recipesOnceLeave)).toEqual([1]);
  expect(await server.redis.exists(RECORD)).toBe(0);
  expect(await server.messages()).toEqual(["A released"]);
});

test.each<[string, Record]>([
  ["a later attempt", { attempt: "3" }],
  ["an attempt on a record with saved progress", { attempt: "1", saved: "half" }],
])("%s that did nothing is not counted, and the earlier state stays", async (_, before) => {
  await have({ ...RUNNING, ...before });
  expect(await send(recipesOnceLeave)).toEqual([1]);
  const attempt = String(Number(before.attempt) - 1);
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...RUNNING, ...before, state: "released", attempt });
  expect(await server.messages()).toEqual(["A released"]);
});

test("inspect shows the rest of a running lease, or when the call ended", async () => {
  expect(await send(recipesOnceInspect)).toEqual([0]);
  await have(RUNNING);
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, expect.any(Number), 0, "running", OWN]);
  expect(((await send(recipesOnceInspect)) as number[])[5]).toBeGreaterThan(1_000_000);
  await have({ ...RUNNING, until: String(PAST) });
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, 0, 0, "running", OWN]);
  await have({ ...RUNNING, state: "done", ended: "5" });
  expect(await send(recipesOnceInspect)).toEqual([1, 9, 1, 1, 2, 0, 5, "done", OWN]);
});

test("a late recovery point never replaces a newer one, and each attempt numbers its own", async () => {
  const save = (owner: string, data: string, number: number): Promise<unknown> => {
    const args: Record = { owner, data, number: String(number) };
    const words = recipesOnceSave.args.map((name) => args[name] ?? "");
    return server.redis.eval(recipesOnceSave.source, 1, RECORD, ...words);
  };
  await have({ ...RUNNING, until: String(PAST) });
  for (const [data, number] of [
    ["one", 1],
    ["two", 2],
    ["one", 1],
    ["two", 2],
  ] as const) {
    expect(await save(OWN, data, number)).toEqual([1]);
  }
  expect(await server.redis.hmget(RECORD, "saved", "saves")).toEqual(["two", "2"]);
  const args: Record = { owner: OTHER, leaseMs: "30000", keepMs: "1000000", fingerprint: "p", isStrict: "0" };
  const words = recipesOnceBegin.args.map((name) => args[name] ?? "");
  const begun = await server.redis.eval(recipesOnceBegin.source, 1, RECORD, ...words);
  expect(begun).toEqual([0, expect.any(Number), 2, 1, "two"]);
  expect(await save(OWN, "late", 3)).toEqual([2]);
  expect(await save(OTHER, "three", 1)).toEqual([1]);
  expect(await server.redis.hmget(RECORD, "saved", "saves")).toEqual(["three", "1"]);
});

test("an end that arrives twice counts once, and a late attempt's end is refused", async () => {
  const settle = (value: string): Promise<unknown> => {
    const args: Record = { owner: OWN, state: "done", value, keepMs: "1000000", channel: `${INBOX}A` };
    const words = recipesOnceSettle.args.map((name) => args[name] ?? "");
    return server.redis.eval(recipesOnceSettle.source, 1, RECORD, ...words);
  };
  await have(RUNNING);
  for (const value of ["v", "another"]) expect(await settle(value)).toEqual([1]);
  const ended = expect.stringMatching(/^\d{13}$/);
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...RUNNING, state: "done", value: "v", ended });
  expect(await server.messages()).toEqual(["A done"]);
  await have({ ...RUNNING, owner: OTHER });
  expect(await settle("v")).toEqual([2, "running"]);
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...RUNNING, owner: OTHER });
});

test("a resolution that arrives twice counts once and gets the same reply", async () => {
  await have({ ...RUNNING, state: "blocked", value: "why" });
  const resolve = (state: string): Promise<unknown> => {
    const args: Record = { state, value: "v", keepMs: "1000000", channel: `${INBOX}A` };
    const words = recipesOnceResolve.args.map((name) => args[name] ?? "");
    return server.redis.eval(recipesOnceResolve.source, 1, RECORD, ...words);
  };
  for (let times = 0; times < 2; times += 1) expect(await resolve("done")).toEqual([1]);
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...RUNNING, state: "done", value: "v", resolved: "done" });
  expect(await server.messages()).toEqual(["A done"]);
  // A different resolution is refused because the call is already resolved.
  expect(await resolve("released")).toEqual([2, "done"]);
});

/** What a holder knows about its call, for a server that has taken over after a failover. */
const KNOWN = {
  owner: OWN,
  token: "9000",
  leaseMs: "30000",
  keepMs: "1000000",
  fingerprint: "p",
  attempt: "2",
  firstMs: "1",
  isSaved: "0",
  saved: "",
  saves: "0",
};
const PUT_BACK = {
  print: "p",
  state: "running",
  owner: OWN,
  token: "9000",
  attempt: "2",
  first: "1",
  since: "9",
  until: expect.stringMatching(/^\d{16}$/),
  saves: "0",
};

async function reclaim(known: Record = {}): Promise<unknown> {
  const args: Record = { ...KNOWN, ...known };
  const words = recipesOnceReclaim.args.map((name) => args[name] ?? "");
  return await server.redis.eval(recipesOnceReclaim.source, 2, RECORD, "hf:lineage", ...words);
}

test.each<[string, Record, Record]>([
  ["that the server does not know", {}, {}],
  [
    "with an earlier attempt on the server",
    { ...RUNNING, owner: OTHER, token: "8999", saved: "early", saves: "3" },
    {},
  ],
  ["that was released before", { ...RUNNING, state: "released", token: "8999", value: "v", ended: "7" }, {}],
  [
    "with its saved progress",
    { ...RUNNING, token: "8999", saved: "early", until: String(PAST) },
    { isSaved: "1", saved: "half" },
  ],
])("a call %s is restored by its holder", async (_, before, known) => {
  if (before.state !== undefined) await have(before);
  expect(await reclaim(known)).toBe(1);
  // An attempt that was followed by another one without an end counts as crashed.
  const died = before.owner === OTHER && before.state === "running" ? { died: "1" } : {};
  const { saved } = known;
  const kept = saved === undefined ? {} : { saved };
  expect(await server.redis.hgetall(RECORD)).toEqual({ ...PUT_BACK, ...died, ...kept });
  const restUs = Number(await server.redis.hget(RECORD, "until")) - (await server.nowUs());
  expect(restUs).toBeLessThanOrEqual(30_000_000);
  expect(restUs).toBeGreaterThan(10_000_000);
  expect(await server.redis.pttl(RECORD)).toBeGreaterThan(KEPT_MS);
});

test("a restored attempt continues its own save numbers, regardless of an earlier attempt's saves", async () => {
  const save = (data: string, number: number): Promise<unknown> => {
    const args: Record = { owner: OWN, data, number: String(number) };
    return server.redis.eval(
      recipesOnceSave.source,
      1,
      RECORD,
      ...recipesOnceSave.args.map((name) => args[name] ?? ""),
    );
  };
  await have({ ...RUNNING, owner: OTHER, token: "8999", saved: "of another", saves: "7" });
  expect(await reclaim({ isSaved: "1", saved: "two", saves: "2" })).toBe(1);
  expect(await save("one", 1), "a late copy").toEqual([1]);
  expect(await server.redis.hget(RECORD, "saved")).toBe("two");
  expect(await save("three", 3)).toEqual([1]);
  expect(await server.redis.hmget(RECORD, "saved", "saves")).toEqual(["three", "3"]);
});

test("putting a call back twice does not shorten its lease", async () => {
  await have({ ...RUNNING, token: "9000" });
  expect(await reclaim()).toBe(1);
  expect(await server.redis.hget(RECORD, "until")).toBe(String(AHEAD));
});

test.each<[string, Record]>([
  ["held by a later attempt", { ...RUNNING, owner: OTHER, token: "9001" }],
  ["held by another owner with the same token", { ...RUNNING, owner: OTHER, token: "9000" }],
  ["that has ended", { ...RUNNING, state: "released", token: "9000" }],
  ["that is done", { ...RUNNING, state: "done", token: "8999" }],
  ["that has failed", { ...RUNNING, state: "failed", token: "8999" }],
  ["that is done without its value", { ...RUNNING, state: "bare", token: "8999" }],
])("a call %s is not restored", async (_, before) => {
  await have(before);
  expect(await reclaim()).toBe(0);
  expect(await server.redis.hgetall(RECORD)).toEqual(before);
});

test("no call is put back on a server that may grant, because another attempt may have finished there", async () => {
  const holdfast = createHoldfast({ redis: server.redis, commandTimeoutMs: 20_000 });
  await (await holdfast.mutex("any").acquire()).release();
  expect(await server.redis.hget("hf:lineage", "run")).not.toBeNull();
  expect(await reclaim()).toBe(0);
  expect(await server.redis.exists(RECORD)).toBe(0);
  await holdfast.close();
});
