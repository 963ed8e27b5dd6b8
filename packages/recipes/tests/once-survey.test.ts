/** `surveyOnce` on a real server. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { ONCE_STATES, once, resolveOnce, surveyOnce } from "../src/index.js";

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

beforeEach(async () => {
  await redis.flushall();
  await holdfast?.close();
  holdfast = createHoldfast({ redis, prefix: `p-${randomUUID().slice(0, 8)}` });
  return () => holdfast.close();
});

test("a survey lists each call with its key, scope and state, but not its value", async () => {
  await once(holdfast, "charge:1", () => "a secret");
  await once(holdfast, "charge:2/{odd}", () => 2, { scope: "tenant/é" });
  await once(holdfast, "%25", () => Promise.reject(new Error("no answer")), { after: () => "block" }).catch(() => {});
  let end = (): void => {};
  let running = Promise.resolve<unknown>(undefined);
  await new Promise<void>((began) => {
    running = once(holdfast, "slow", () => {
      began();
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
  });
  const { calls, nextCursor, unreachable } = await surveyOnce(holdfast);
  const facts = calls.map(({ key, scope, state, attempt, holder }) => [key, scope, state, attempt, holder?.pid]);
  expect(facts.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))).toEqual([
    ["%25", undefined, "blocked", 1, undefined],
    ["charge:1", undefined, "done", 1, undefined],
    ["charge:2/{odd}", "tenant/é", "done", 1, undefined],
    ["slow", undefined, "running", 1, process.pid],
  ]);
  expect({ nextCursor, unreachable }).toEqual({ nextCursor: undefined, unreachable: 0 });
  expect(JSON.stringify(calls)).not.toContain("secret");
  end();
  await running;

  const blocked = await surveyOnce(holdfast, { states: ["blocked"] });
  expect(blocked.calls.map(({ key }) => key)).toEqual(["%25"]);
  expect(await resolveOnce(holdfast, blocked.calls[0]?.key ?? "", "release")).toBe(true);
  expect((await surveyOnce(holdfast, { states: ["blocked"] })).calls).toEqual([]);
  expect((await surveyOnce(holdfast, { pattern: "charge:*" })).calls).toHaveLength(2);
  expect((await surveyOnce(holdfast, { scope: "tenant/é" })).calls).toHaveLength(1);
});

test("a survey is paginated and lists only calls of its own prefix", async () => {
  const keys = Array.from({ length: 60 }, (_, i) => `job:${i}`);
  await Promise.all(keys.map((key) => once(holdfast, key, () => 1)));
  await holdfast.mutex("once").acquire();
  const stranger = createHoldfast({ redis, prefix: "other" });
  await once(stranger, "job:x", () => 1);
  const seen = new Set<string>();
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await surveyOnce(holdfast, { limit: 10, ...(cursor === undefined ? {} : { cursor }) });
    for (const { key } of page.calls) seen.add(key);
    cursor = page.nextCursor;
    pages += 1;
  } while (cursor !== undefined);
  expect([...seen].toSorted()).toEqual(keys.toSorted());
  expect(pages).toBeGreaterThan(1);
  await stranger.close();
});

test("the error for an invalid option names the option", async () => {
  await expect(surveyOnce(holdfast, { states: ["over" as "done"] })).rejects.toThrow(
    /states must be a non-empty array of .*; got "over"/,
  );
  await expect(surveyOnce(holdfast, { states: [] })).rejects.toThrow(/; got an empty array/);
  await expect(surveyOnce(holdfast, { limit: 0 })).rejects.toThrow(/limit must be/);
  await expect(surveyOnce(holdfast, { cursor: "x" })).rejects.toThrow(/cursor must be/);
  expect(ONCE_STATES).toContain("blocked");
  const clients = [redis.duplicate(), redis.duplicate(), redis.duplicate()];
  const quorum = createHoldfast({ redlock: clients });
  await expect(surveyOnce(quorum)).rejects.toThrow(UnsupportedError);
  await quorum.close();
  for (const client of clients) client.disconnect();
});
