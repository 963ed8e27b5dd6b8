import { expect, test } from "vitest";
import { clientRecordAnnounce, clientRecordMark, clientRecordRead } from "../../src/generated/scripts.js";
import { KEYS, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const ODD = 'h"o\nst\u0000🔐';

test("a record is read as it was written and expires after `keepMs`", async () => {
  const about = {
    ...{ host: ODD, pid: 42, name: "", version: "1.2.3", protocol: 1, ageMs: 90_000, keepMs: 50_000 },
    timeouts: '{"library":"x"}',
  };
  for (const _ of [1, 2]) expect(await server.run(clientRecordAnnounce, { ...about, nonces: " b a " })).toBe(1);
  expect(await server.run(clientRecordRead)).toEqual([1, ODD, "42", "", "1.2.3", "1"]);
  const [seen, since] = await server.redis.hmget(KEYS.client as string, "seen", "since");
  expect(Number(seen) - Number(since)).toBe(90_000_000);
  expect(await server.redis.hget(KEYS.client as string, "timeouts")).toBe('{"library":"x"}');
  const left = await server.redis.pttl(KEYS.client as string);
  expect(left).toBeGreaterThan(40_000);
  expect(left).toBeLessThanOrEqual(50_000);
});

test("a record that another process wrote under the same id is reported and then replaced", async () => {
  const about = { timeouts: "", pid: 42, name: "", version: "1.2.3", protocol: 1, ageMs: 0, keepMs: 50_000 };
  expect(await server.run(clientRecordAnnounce, { ...about, host: "one", nonces: " a " })).toBe(1);
  // Nonces are compared as a whole: neither `aa` nor `a-` matches `a`.
  expect(await server.run(clientRecordAnnounce, { ...about, host: "two", nonces: " b aa a- " })).toEqual([
    2,
    "one",
    "42",
  ]);
  expect(await server.redis.hmget(KEYS.client as string, "host", "nonce")).toEqual(["two", "b"]);
  expect(await server.run(clientRecordAnnounce, { ...about, host: "two", nonces: " c b " })).toBe(1);
});

test("a caller with a different protocol is not marked and gets the longest-lasting protocol in use", async () => {
  const caller = { protocol: 1, clientId: "me", version: "1.0.0", keepMs: 60_000 };
  const nowMs = Date.now();
  const key = KEYS.marker as string;
  await server.redis.hset(key, {
    2: `1 ${nowMs + 50_000} two 2.0`,
    3: `1 ${nowMs + 90_000} three 3.0`,
    4: `1 ${nowMs - 1} four 4.0`,
  });
  const [code, leftMs, ...words] = (await server.run(clientRecordMark, caller)) as unknown[];
  expect([code, ...words]).toEqual([2, "3", "three", "3.0"]);
  expect(leftMs).toBeGreaterThan(80_000);
  expect((await server.redis.hkeys(key)).toSorted()).toEqual(["2", "3"]);
});

test("a mark is never shortened and keeps its key alive", async () => {
  const caller = { protocol: 1, clientId: "me", version: "1.0.0" };
  const key = KEYS.marker as string;
  for (const keepMs of [600_000, 60_000])
    expect(await server.run(clientRecordMark, { ...caller, keepMs })).toEqual([1]);
  const [seen, last] = String(await server.redis.hget(key, "1")).split(" ");
  expect(Number(last) - Number(seen)).toBeGreaterThan(500_000);
  expect(await server.redis.pttl(key)).toBeGreaterThan(500_000);
});

test("a client without a record is unknown, and reading creates no record", async () => {
  expect(await server.run(clientRecordRead)).toEqual([0]);
  expect(await server.redis.dbsize()).toBe(0);
});
