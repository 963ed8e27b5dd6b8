/** Tests which pause a history entry is about, and when the doctor trusts the history. */
import { createHoldfast, type Holdfast } from "holdfast";
import { appendHistory, extendPause, type HistoryRecorder, recordHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { judge } from "../../src/doctor/examine.js";
import type { NodeFacts, PauseFacts, RecordedPause } from "../../src/doctor/facts.js";
import { type Link, within } from "../../src/doctor/read/link.js";
import { MOST_EVENTS, readPauses } from "../../src/doctor/read/pauses.js";
import { at, examined, said } from "./examining.js";
import { facts } from "./samples.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const ID = "lost-pauses";
const WORDS = { label: "db", by: "ana" };
const RESUMED = { what: "resumed", kind: "mutex", name: "deploy", by: "ben" } as const;
const FAR_MS = 8_000_000_000_000;

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
/** A Holdfast without a recorded history. */
let quiet: Holdfast;
let recorder: HistoryRecorder;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});
beforeEach(() => {
  holdfast = createHoldfast({ redis });
  quiet = createHoldfast({ redis });
  recorder = recordHistory(holdfast);
});
afterEach(async () => {
  await recorder.stop();
  await holdfast.close();
  await quiet.close();
  await redis.flushall();
});

async function told(): Promise<string> {
  await recorder.flush();
  return said(await examined([at(server.port)], [ID], { forMs: 60_000 }), ID);
}

test("a pause whose end was changed is judged by the new end", async () => {
  const { pause } = await holdfast.pause("deploy", { ...WORDS, untilAtMs: FAR_MS });
  await extendPause(holdfast, "deploy", { pause: pause.owner, untilAtMs: FAR_MS - 1_000 });
  expect(await told()).toMatch(/^ok: 1 history/);
  await redis.del("hf:mutex:{deploy}:pause");
  const until = new Date(FAR_MS - 1_000).toISOString().slice(0, 19).replace("T", " ");
  expect(await told()).toContain(`until ${until}Z, and is no longer paused`);
  await recorder.flush();
  const { pause: again } = await holdfast.pause("deploy", { ...WORDS, untilAtMs: FAR_MS });
  await extendPause(holdfast, "deploy", { pause: again.owner });
  await holdfast.resume("deploy", { by: "ben" });
  await redis.del("hf:mutex:{deploy}:resumed");
  expect(await told()).toMatch(/^ok/);
});

test("a late resume entry does not end a later pause", async () => {
  const { pause: first } = await quiet.pause("deploy", WORDS);
  await quiet.resume("deploy", { by: "ben" });
  await holdfast.pause("deploy", WORDS);
  await recorder.flush();
  await appendHistory(quiet, { ...RESUMED, owner: first.owner });
  await redis.set("hf:mutex:{deploy}:resumed", `x 0 ${FAR_MS} ${first.owner}`);
  expect(await told()).toMatch(/^ok/);
  await redis.del("hf:mutex:{deploy}:pause");
  expect(await told()).toMatch(/^warning: mutex deploy was paused by ana/);
});

test("a resume entry ends the pause that it names, even if its time is earlier than the pause", async () => {
  const { pause } = await holdfast.pause("deploy", WORDS);
  await quiet.resume("deploy", { by: "ben" });
  await appendHistory(quiet, { ...RESUMED, owner: pause.owner, agoMs: 60_000 });
  await redis.del("hf:mutex:{deploy}:resumed");
  expect(await told()).toMatch(/^ok/);
});

test("a mutex with a key is one lock, under whichever name its events are recorded", async () => {
  await holdfast.pause("stock", { ...WORDS, key: "legacy:stock" });
  await quiet.resume("stock", { by: "ben", key: "legacy:stock" });
  await redis.del("hf:mutex:mapped:{legacy:stock}:resumed");
  expect(await told()).toMatch(/^warning: mutex stock \(key legacy:stock\) was paused/);
  await appendHistory(quiet, { ...RESUMED, name: "legacy:stock", key: "legacy:stock" });
  expect(await told()).toBe("ok: 2 histories: no pause was lost");
});

test("the check says if a history is longer than the part that it reads", async () => {
  const fill = "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', 'at', 1, 'entry', '{}') end";
  await redis.eval(fill, 1, "hf:history:{busy}", MOST_EVENTS - 1);
  expect(await told()).toBe("ok: 1 history: no pause was lost");
  await redis.eval(fill, 1, "hf:history:{busy}", 1);
  expect(await told()).toBe("ok: 1 history: no pause was lost, as far as the histories go back");
});

/**
 * Simulates a server with this number of histories, each with a lost pause. @param answer  the reply of each script
 * call, in place of the default
 */
function linkOf(histories: number, answer: (nth: number) => Promise<unknown>, forMs = 60_000): Link {
  let asked = 0;
  const call = async (command: string): Promise<unknown> => {
    if (command === "TIME") return ["5", "0"];
    if (command === "SCRIPT") return "sha";
    if (command === "SCAN") return ["0", Array.from({ length: histories }, (_, n) => `hf:history:{${n}}`)];
    if (command === "ZRANGE") return [];
    if (command !== "EVALSHA") return null;
    asked += 1;
    return await answer(asked);
  };
  const endAtMs = performance.now() + forMs;
  const its: Partial<Link> = { prefix: "hf", topology: "single", isPrimary: true, endAtMs, forMs };
  return { ...its, redis: { call } } as Link;
}

const GONE = [1, "1000", JSON.stringify({ what: "paused", kind: "mutex", ...WORDS })];

test("histories read before a failure count, but a missing permission makes the whole check unknown", async () => {
  const failing = async (words: string): Promise<PauseFacts | undefined> =>
    await readPauses(
      linkOf(9, async (nth) => {
        if (nth > 4) throw new Error(words);
        return GONE;
      }),
    );
  const kept = await failing("Command timed out");
  expect(kept).toMatchObject({ histories: 4, stopped: "late" });
  expect(kept?.recorded).toHaveLength(4);
  await expect(failing("NOPERM this user has no permissions")).rejects.toThrow("NOPERM");
});

test("histories read before the time limit count", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const reading = readPauses(linkOf(9, (nth) => (nth > 4 ? new Promise(() => {}) : Promise.resolve(GONE)), 5_000));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await reading).toMatchObject({ histories: 4, stopped: "late", nowMs: 9_900 });
  } finally {
    vi.useRealTimers();
  }
});

test("the check reads two histories at a time, so that the server can serve other clients", async () => {
  let now = 0;
  let most = 0;
  const link = linkOf(20, async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise(setImmediate);
    now -= 1;
    return GONE;
  });
  expect(await readPauses(link)).toMatchObject({ histories: 20 });
  expect(most).toBe(2);
});

test("a reading that takes too long is reported with the time limit", async () => {
  const limit = { endAtMs: performance.now(), forMs: 5_000 };
  await expect(within(new Promise(() => {}), limit)).rejects.toThrow(/^no reply within 5s$/);
});

function judged(...nodes: readonly NodeFacts[]): string[] {
  return judge(nodes)
    .filter(({ id }) => id === ID)
    .map(({ status, measured, fix }) => `${status}: ${measured}; ${fix}`);
}

function node(pauses: Partial<PauseFacts>): NodeFacts {
  return facts("Redis 7.2", { pauses: { nowMs: 5_000, histories: 1, recorded: [], ...pauses } });
}

function unread(why: string): NodeFacts {
  const { pauses: _, ...rest } = facts("Redis 7.2");
  return { ...rest, hidden: new Map([["pauses", why]]) };
}

test("the suggested fix depends on the reason why the result is unknown", () => {
  for (const why of ["NOPERM this user has no permissions to run", "ERR command is not allowed: SCAN"]) {
    expect(judged(unread(why))).toEqual([expect.stringMatching(/^unknown: .*; grant SCAN and XREVRANGE/)]);
  }
  for (const [why, flag] of [
    ["no reply within 5s", "--for 1m"],
    ["Command timed out", "--command-timeout 30s"],
  ] as const) {
    const fix = `; allow more time: run holdfast doctor ${flag}`;
    expect(judged(unread(why))).toEqual([expect.stringMatching(new RegExp(`^unknown: .*${fix}$`))]);
  }
});

test("a node that could not be read is not reported as having no history", () => {
  const empty = node({ histories: 0 });
  expect(judged(empty, unread("Command timed out"))).toEqual([
    expect.stringMatching(/^ok: 0 histories/),
    expect.stringMatching(/^unknown: no history could be read \(Command timed out\)/),
  ]);
  const replica = { ...unread(""), role: "slave" };
  expect(judged(empty, replica)).toEqual([
    expect.stringMatching(/^skipped: there is no history/),
    expect.stringMatching(/^skipped: a replica/),
  ]);
});

test("another node may have the end of a pause, but only for a mutex with a key", () => {
  const told: RecordedPause = { kind: "mutex", name: "stock", key: "k", atMs: 1_000, isInForce: false };
  const end = { kind: "mutex", name: "k", key: "k", atMs: 2_000 };
  const [lost] = judged(node({ recorded: [told] }));
  expect(lost).toMatch(/^finding: mutex stock \(key k\)/);
  expect(judged(node({ recorded: [told] }), node({ ends: [end] }))[0]).toMatch(/^ok/);
  expect(judged(node({ recorded: [told] }), node({ ends: [{ ...end, atMs: 999 }] }))[0]).toBe(lost);
  expect(judged(node({ recorded: [told] }), node({ ends: [{ ...end, key: "other" }] }))[0]).toBe(lost);
  const later = { ...told, name: "k", atMs: 1_500, untilAtMs: 4_000 };
  expect(judged(node({ recorded: [told] }), node({ recorded: [later] }))).toEqual([
    expect.stringMatching(/^ok/),
    expect.stringMatching(/^ok/),
  ]);
});
