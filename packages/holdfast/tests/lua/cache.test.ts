/** The scripts of a cache alone: the entry before, one call, its reply, the entry after. */
import { describe, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import {
  recipesCacheExtend,
  recipesCacheFail,
  recipesCacheFill,
  recipesCacheInvalidate,
  recipesCacheLeave,
  recipesCacheLook,
} from "../../src/generated/recipes-scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const ENTRY = "hf:cache:{users/7}";
const [OWN, OTHER] = ["A/1/30000/1", "B/2/30000/1"];
const CHANNEL = `${INBOX}A`;
/** Moments that are far from now. */
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

/** As the owner, unless told otherwise. */
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

/** How far from now a moment of the entry is, in ms. */
async function restMs(field: string): Promise<number> {
  return (Number((await entry())[field]) - (await server.nowUs())) / 1_000;
}

async function expectAbout(field: string, ms: number): Promise<void> {
  const rest = await restMs(field);
  expect(rest).toBeLessThanOrEqual(ms);
  // What a machine may take for a few requests.
  expect(rest).toBeGreaterThan(ms - 9_000);
}

describe("look", () => {
  test("a fresh value is given, with how long it is", async () => {
    await have({ value: "v", fresh: String(AHEAD), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([0, expect.any(Number), "v"]);
    expect(Object.keys(await entry())).toEqual(["value", "fresh", "stale"]);
  });

  test("whoever finds nothing loads, by a token of now", async () => {
    const nowUs = await server.nowUs();
    const [outcome, token, ...value] = (await send(recipesCacheLook)) as number[];
    expect([outcome, value]).toEqual([1, []]);
    expect(token).toBeGreaterThanOrEqual(nowUs);
    expect(await entry()).toEqual({ owner: OWN, token: String(token), until: expect.any(String) });
    await expectAbout("until", 30_000);
    expect(await server.redis.pttl(ENTRY)).toBeLessThanOrEqual(60_000);
  });

  test("a token is higher than the last, whatever the clock says", async () => {
    await have({ token: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([1, AHEAD + 1]);
  });

  test("a stale value is given to whoever loads, and what is too old is not", async () => {
    await have({ value: "v", fresh: String(PAST), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([1, expect.any(Number), "v"]);
    await server.redis.hdel(ENTRY, "owner", "until");
    await server.redis.hset(ENTRY, "stale", PAST);
    expect(await send(recipesCacheLook)).toEqual([1, expect.any(Number)]);
  });

  test("while somebody else loads, a stale value is given, and whoever has none is noted as one who waits", async () => {
    await have({ ...LOAD, owner: OTHER, value: "v", fresh: String(PAST), stale: String(AHEAD) });
    expect(await send(recipesCacheLook)).toEqual([2, expect.any(Number), 5, "v"]);
    expect(await entry()).not.toHaveProperty("waited");
    await server.redis.hset(ENTRY, "stale", PAST);
    expect(await send(recipesCacheLook)).toEqual([2, expect.any(Number), 5]);
    expect(await entry()).toMatchObject({ owner: OTHER, waited: "1" });
  });

  test("sent again it has the same token, and its lease begins anew", async () => {
    await have({ ...LOAD, until: String(PAST) });
    expect(await send(recipesCacheLook)).toEqual([1, 5]);
    await expectAbout("until", 30_000);
  });

  test("an entry that lives for longer than it needs keeps its time", async () => {
    await have({ token: "5" });
    await send(recipesCacheLook);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(60_000);
  });
});

describe("extend", () => {
  test("the lease begins anew, and so does the time of an entry that has less", async () => {
    await have({ ...LOAD, until: String(PAST) });
    expect(await send(recipesCacheExtend, { keepMs: 2 * KEPT_MS })).toEqual([1]);
    await expectAbout("until", 30_000);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(KEPT_MS);
  });

  test("nothing ends sooner for it", async () => {
    await have(LOAD);
    expect(await send(recipesCacheExtend)).toEqual([1]);
    expect(await entry()).toEqual(LOAD);
    expect(await server.redis.pttl(ENTRY)).toBeGreaterThan(60_000);
  });

  test("of what another loads, or nobody, or what is forgotten, it changes nothing", async () => {
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
  test("the value is kept for its time, and a failure before it is forgotten", async () => {
    await have({ ...LOAD, failures: "1", failed: OTHER, verdict: "1" });
    expect(await send(recipesCacheFill, { freshMs: 20_000, staleMs: 40_000 })).toEqual([1]);
    const kept = { value: "loaded", token: "5", filled: OWN, fresh: expect.any(String), stale: expect.any(String) };
    expect(await entry()).toEqual(kept);
    await expectAbout("fresh", 20_000);
    await expectAbout("stale", 60_000);
    expect(await server.redis.pttl(ENTRY)).toBeLessThanOrEqual(60_000);
  });

  test("what is not to be kept is told, and takes the place of what was there", async () => {
    await have({ ...LOAD, value: "v", waited: "1" });
    expect(await send(recipesCacheFill, { freshMs: 0 })).toEqual([1]);
    expect(await entry()).toEqual({ token: "5", filled: OWN });
    expect(await server.messages()).toEqual(["A told"]);
  });

  test("sent again it changes nothing, and tells nobody twice", async () => {
    await have({ ...LOAD, waited: "1" });
    await send(recipesCacheFill);
    const filled = await entry();
    expect(await send(recipesCacheFill, { value: "another" })).toEqual([1]);
    expect(await entry()).toEqual(filled);
    expect(await server.messages()).toEqual(["A told"]);
  });

  test.each([
    ["another loads", { ...LOAD, owner: OTHER }],
    ["the same one loads anew", { ...LOAD, token: "6" }],
    ["nobody loads", { token: "5" }],
  ])("when %s it fills nothing", async (_, before) => {
    await have(before);
    expect(await send(recipesCacheFill)).toEqual([2]);
    expect(await entry()).toEqual(before);
  });
});

describe("fail", () => {
  test("it is counted, and one of those who wait is to try; the last attempt is told to all, and they begin anew", async () => {
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

  test("a source that has failed is left alone for a while where there is a stale value", async () => {
    await have({ ...LOAD, value: "v", stale: String(AHEAD) });
    await send(recipesCacheFail);
    expect(await entry()).not.toHaveProperty("owner");
    await expectAbout("until", 10_000);
  });

  test("where the value is too old to be given, one of those who wait may try at once", async () => {
    await have({ ...LOAD, value: "v", stale: String(PAST), waited: "1" });
    expect(await send(recipesCacheFail)).toEqual([1]);
    expect(await send(recipesCacheLook, { owner: OTHER })).toEqual([1, expect.any(Number)]);
  });

  test("sent again it gives the same answer, and counts once", async () => {
    await have({ ...LOAD, waited: "1" });
    await send(recipesCacheFail, { attempts: 1 });
    const failed = await entry();
    expect(await send(recipesCacheFail, { attempts: 1 })).toEqual([2]);
    expect(await entry()).toEqual(failed);
    expect(await server.messages()).toEqual(["A over"]);
  });

  test("a load that is another's by now does not fail with it", async () => {
    const other = { ...LOAD, owner: OTHER, failures: "1", waited: "1" };
    await have(other);
    expect(await send(recipesCacheFail)).toEqual([3]);
    expect(await entry()).toEqual(other);
    expect(await server.messages()).toEqual([]);
  });
});

describe("leave", () => {
  test("the load is nobody's, and whoever waits is told; no failure is counted", async () => {
    await have({ ...LOAD, waited: "1", failures: "1" });
    expect(await send(recipesCacheLeave)).toEqual([1]);
    expect(await entry()).toEqual({ token: "5", failures: "1" });
    expect(await server.messages()).toEqual(["A told"]);
  });

  test("of what is another's by now it takes nothing away", async () => {
    const other = { ...LOAD, owner: OTHER, waited: "1" };
    await have(other);
    expect(await send(recipesCacheLeave)).toEqual([2]);
    expect(await entry()).toEqual(other);
    expect(await server.messages()).toEqual([]);
  });
});

describe("invalidate", () => {
  test("nothing is left but a higher token, and whoever waits is told, once", async () => {
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
  "$name: where nobody waits nothing is sent",
  async (script) => {
    await have(LOAD);
    await send(script);
    expect(await server.messages()).toEqual([]);
  },
);
