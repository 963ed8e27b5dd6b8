/** The scripts of the cache in isolation: the entry before, one call, its reply, the entry after. */
import { describe, expect, test } from "vitest";
import type { Script } from "../../../holdfast/src/core/store.js";
import { INBOX, ScriptServer } from "../../../holdfast/tests/lua/script-server.js";
import {
  recipesCacheExtend,
  recipesCacheFail,
  recipesCacheFill,
  recipesCacheInvalidate,
  recipesCacheLeave,
  recipesCacheLook,
} from "../../src/generated/scripts.js";

const server = new ScriptServer();
const ENTRY = "hf:cache:{users/7}";
const [OWN, OTHER] = ["A/1/30000/1", "B/2/30000/1"];
const CHANNEL = `${INBOX}A`;
/** Timestamps in µs, far in the past and in the future. */
const [PAST, AHEAD] = [1_600_000_000_000_000, 4_000_000_000_000_000];
const LOAD = { owner: OWN, token: "5", until: String(AHEAD) };
const KEPT_MS = 500_000;

type Entry = Readonly<Record<string, string>>;

async function have(entry: Entry): Promise<void> {
  await server.redis.hset(ENTRY, entry);
  await server.redis.pexpire(ENTRY, KEPT_MS);
}

async function entry(): Promise<Entry> {
  return await server.redis.hgetall(ENTRY);
}

/** Runs a script on behalf of `OWN`, unless `given` names another owner. */
async function send(script: Script, given: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
  const usual = {
    owner: OWN,
    token: 5,
    leaseMs: 30_000,
    keepMs: 60_000,
    freshMs: 1_000,
    staleMs: 2_000,
    pauseMs: 10_000,
    attempts: 3,
    value: "loaded",
    channel: CHANNEL,
    message: "told",
    again: "again",
    over: "over",
    request: "r1",
  };
  const args: Readonly<Record<string, string | number>> = { ...usual, ...given };
  return await server.redis.eval(script.source, 1, ENTRY, ...script.args.map((name) => String(args[name])));
}

/** Milliseconds from now until the timestamp in a field of the entry. */
async function restMs(field: string): Promise<number> {
  return (Number((await entry())[field]) - (await server.nowUs())) / 1_000;
}

async function expectAbout(field: string, ms: number): Promise<void> {
  const rest = await restMs(field);
  expect(rest).toBeLessThanOrEqual(ms);
  // Allows for a slow machine.
  expect(rest).toBeGreaterThan(ms - 9_000);
}

describe("look", () => {
  test("a fresh value is returned with how long it stays fresh", async () => {
    await have({ value: "v", fresh: String(AHEAD), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([0, expect.any(Number), "v"]);
    expect(Object.keys(await entry())).toEqual(["value", "fresh", "stale"]);
  });

  test("a caller that finds no value becomes the loader, with a token from the clock", async () => {
    const nowUs = await server.nowUs();
    const [outcome, token, ...value] = (await send(recipesCacheLook)) as number[];
    expect([outcome, value]).toEqual([1, []]);
    expect(token).toBeGreaterThanOrEqual(nowUs);
    expect(await entry()).toEqual({ owner: OWN, token: String(token), until: expect.any(String) });
    await expectAbout("until", 30_000);
    expect(await server.redis.pttl(ENTRY)).toBeLessThanOrEqual(60_000);
  });

  test("a token is higher than the last one, even if the clock is behind", async () => {
    await have({ token: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([1, AHEAD + 1]);
  });

  test("the loader gets a stale value, but not one that is too old", async () => {
    await have({ value: "v", fresh: String(PAST), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([1, expect.any(Number), "v"]);
    await server.redis.hdel(ENTRY, "owner", "until");
    await server.redis.hset(ENTRY, "stale", PAST);
    expect(await send(recipesCacheLook)).toEqual([1, expect.any(Number)]);
  });

  test("during another client's load a caller gets the stale value, or is recorded as waiting", async () => {
    await have({ ...LOAD, owner: OTHER, value: "v", fresh: String(PAST), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([2, expect.any(Number), 5, "v"]);
    expect(await entry()).not.toHaveProperty("waited");
    await server.redis.hset(ENTRY, "stale", PAST);
    expect(await send(recipesCacheLook)).toEqual([2, expect.any(Number), 5]);
    expect(await entry()).toMatchObject({ owner: OTHER, waited: "1" });
  });

  test("a repeated request gets the same token and renews the lease", async () => {
    await have({ ...LOAD, until: String(PAST) });
    expect(await send(recipesCacheLook)).toEqual([1, 5]);
    await expectAbout("until", 30_000);
  });

  test("an entry with a longer lifetime than needed keeps it", async () => {
    await have({ token: "5" });
    await send(recipesCacheLook);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(60_000);
  });
});

describe("extend", () => {
  test("the lease is renewed, and a shorter lifetime of the entry is extended", async () => {
    await have({ ...LOAD, until: String(PAST) });
    expect(await send(recipesCacheExtend, { keepMs: 2 * KEPT_MS })).toEqual([1]);
    await expectAbout("until", 30_000);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(KEPT_MS);
  });

  test("neither the lease nor the entry's lifetime is shortened", async () => {
    await have(LOAD);
    expect(await send(recipesCacheExtend)).toEqual([1]);
    expect(await entry()).toEqual(LOAD);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(60_000);
  });

  test("nothing changes if the entry is missing, has another loader, or has no loader", async () => {
    expect(await send(recipesCacheExtend)).toEqual([3]);
    expect(await entry()).toEqual({});
    for (const other of [
      { ...LOAD, owner: OTHER },
      { token: "6", invalidated: "r" },
    ]) {
      await server.redis.del(ENTRY);
      await have(other);
      expect(await send(recipesCacheExtend)).toEqual([2]);
      expect(await entry()).toEqual(other);
    }
  });
});

describe("fill", () => {
  test("the value is kept for its lifetime, and earlier failures are cleared", async () => {
    await have({ ...LOAD, failures: "1", failed: OTHER, verdict: "1" });
    expect(await send(recipesCacheFill, { freshMs: 20_000, staleMs: 40_000 })).toEqual([1]);
    const kept = { value: "loaded", token: "5", filled: OWN, fresh: expect.any(String), stale: expect.any(String) };
    expect(await entry()).toEqual(kept);
    await expectAbout("fresh", 20_000);
    await expectAbout("stale", 60_000);
    expect(await server.redis.pttl(ENTRY)).toBeLessThanOrEqual(60_000);
  });

  test("a value that is not to be kept reaches the waiters and replaces the old value", async () => {
    await have({ ...LOAD, value: "v", waited: "1" });
    expect(await send(recipesCacheFill, { freshMs: 0 })).toEqual([1]);
    expect(await entry()).toEqual({ token: "5", filled: OWN });
    expect(await server.messages()).toEqual(["A told"]);
  });

  test("a repeated request changes nothing and notifies no waiter twice", async () => {
    await have({ ...LOAD, waited: "1" });
    await send(recipesCacheFill);
    const filled = await entry();
    expect(await send(recipesCacheFill, { value: "another" })).toEqual([1]);
    expect(await entry()).toEqual(filled);
    expect(await server.messages()).toEqual(["A told"]);
  });

  test.each([
    ["another owner loads", { ...LOAD, owner: OTHER }],
    ["the same owner loads again", { ...LOAD, token: "6" }],
    ["nobody loads", { token: "5" }],
  ])("when %s, nothing is filled", async (_, before) => {
    await have(before);
    expect(await send(recipesCacheFill)).toEqual([2]);
    expect(await entry()).toEqual(before);
  });
});

describe("fail", () => {
  test("each failure is counted and one waiter retries; after the last attempt all waiters are notified", async () => {
    for (const [failures, reply, message] of [
      ["1", 1, "again"],
      ["2", 1, "again"],
      ["0", 2, "over"],
    ]) {
      await have({ ...LOAD, waited: "1", owner: `own ${failures}` });
      expect(await send(recipesCacheFail, { owner: `own ${failures}` })).toEqual([reply]);
      expect(await entry()).toEqual({ token: "5", failures, failed: `own ${failures}`, verdict: String(reply) });
      expect(await server.messages()).toEqual([`A ${message}`]);
      server.heard.length = 0;
    }
  });

  test("with a stale value, a failed source is not retried for a while", async () => {
    await have({ ...LOAD, value: "v", stale: String(AHEAD) });
    await send(recipesCacheFail);
    expect(await entry()).not.toHaveProperty("owner");
    await expectAbout("until", 10_000);
  });

  test("if the value is too old to return, a waiter may retry immediately", async () => {
    await have({ ...LOAD, value: "v", stale: String(PAST), waited: "1" });
    expect(await send(recipesCacheFail)).toEqual([1]);
    expect(await send(recipesCacheLook, { owner: OTHER })).toEqual([1, expect.any(Number)]);
  });

  test("a repeated request gets the same reply and is counted once", async () => {
    await have({ ...LOAD, waited: "1" });
    await send(recipesCacheFail, { attempts: 1 });
    const failed = await entry();
    expect(await send(recipesCacheFail, { attempts: 1 })).toEqual([2]);
    expect(await entry()).toEqual(failed);
    expect(await server.messages()).toEqual(["A over"]);
  });

  test("a late failure does not fail the next loader", async () => {
    const other = { ...LOAD, owner: OTHER, failures: "1", waited: "1" };
    await have(other);
    expect(await send(recipesCacheFail)).toEqual([3]);
    expect(await entry()).toEqual(other);
    expect(await server.messages()).toEqual([]);
  });
});

describe("leave", () => {
  test("the load is given up and waiters are notified; no failure is counted", async () => {
    await have({ ...LOAD, waited: "1", failures: "1" });
    expect(await send(recipesCacheLeave)).toEqual([1]);
    expect(await entry()).toEqual({ token: "5", failures: "1" });
    expect(await server.messages()).toEqual(["A told"]);
  });

  test("a late leave takes nothing from the next loader", async () => {
    const other = { ...LOAD, owner: OTHER, waited: "1" };
    await have(other);
    expect(await send(recipesCacheLeave)).toEqual([2]);
    expect(await entry()).toEqual(other);
    expect(await server.messages()).toEqual([]);
  });
});

describe("invalidate", () => {
  test("only a higher token is left, and waiters are notified once", async () => {
    await have({ ...LOAD, token: String(AHEAD), value: "v", waited: "1" });
    expect(await send(recipesCacheInvalidate)).toEqual([1]);
    expect(await entry()).toEqual({ token: String(AHEAD + 1), invalidated: "r1" });
    expect(await server.redis.pttl(ENTRY)).toBeLessThanOrEqual(60_000);
    expect(await send(recipesCacheInvalidate)).toEqual([1]);
    expect(await entry()).toEqual({ token: String(AHEAD + 1), invalidated: "r1" });
    expect(await server.messages()).toEqual(["A told"]);
  });
});

test.each([recipesCacheFill, recipesCacheFail, recipesCacheLeave, recipesCacheInvalidate])(
  "$name: without waiters, no message is published",
  async (script) => {
    await have(LOAD);
    await send(script);
    expect(await server.messages()).toEqual([]);
  },
);
