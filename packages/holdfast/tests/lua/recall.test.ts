/** Each script that asks for a mutex recalls a claim that its process may retain, and no other claim. Runs on a real server. */
import { expect, test } from "vitest";
import { conditionLeave, conditionSignal, conditionWait } from "../../src/generated/condition.js";
import { multiLockAcquire } from "../../src/generated/multi-lock.js";
import { mutexAcquire } from "../../src/generated/mutex.js";
import { pausingPause } from "../../src/generated/pausing.js";
import { INBOX, KEYS, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

/** Client A holds the mutex under one of these claims. Only the claim with an odd number of tokens may be retained. */
const RETAINABLE = "A/1/30000/31/;3000";
const OTHERS = ["A/1/30000/1/", "A/1/30000/32/;3000", "A/1/30000/128/;3000"];
const TOKEN = 1_600_000_000_000_000;
/** Client B wants the mutex. */
const B = "B/2/30000/1/";
const C = "C/3/30000/1/";

const waitsForSignal = (): Promise<unknown> => server.redis.zadd(KEYS.condition as string, 1, B);
const leave = (entered: number): Promise<unknown> =>
  server.run(conditionLeave, { from: C, token: TOKEN, owner: C, entered });

/** Requests for the mutex while `holder` holds it. */
const REQUESTS: Readonly<Record<string, (holder: string) => Promise<unknown>>> = {
  "an acquire that queues": () => server.run(mutexAcquire, { owner: B, enqueue: 1 }),
  "a tryAcquire that is refused": () => server.run(mutexAcquire, { owner: B, enqueue: 0 }),
  "a pause": () => server.run(pausingPause, { request: "r", untilMs: 9_000_000_000_000, words: "a/b" }),
  "a multi-lock that is refused": () => {
    const keys = ["lock", "fence", "queue", "handed", "pause"].map((key) => KEYS[key] as string);
    return server.redis.eval(multiLockAcquire.source, keys.length, ...keys, 30_000, B, INBOX);
  },
  async "a signal of a condition"(holder) {
    await waitsForSignal();
    return server.run(conditionSignal, { owner: holder, token: TOKEN, request: 1, most: 1 });
  },
  async "a signaled waiter that asks again"() {
    await server.set({ queue: [B] });
    return server.run(conditionWait, { from: C, token: TOKEN, owner: B, again: 1 });
  },
  async "a waiter that passes its signal on"() {
    await waitsForSignal();
    return leave(1);
  },
  async "a waiter that may have been signaled and passes that on"() {
    await waitsForSignal();
    return leave(0);
  },
};

const told = async (): Promise<string[]> => (await server.messages()).filter((message) => message.startsWith("A "));

test.each(Object.entries(REQUESTS))("%s recalls a claim that may be retained, and no other", async (_, request) => {
  for (const holder of [RETAINABLE, ...OTHERS]) {
    await server.redis.flushall();
    await server.set({ lock: holder, fence: TOKEN });
    await request(holder);
    expect((await server.state()).lock).toBe(holder);
    expect(await told()).toEqual(["A ~1"]);
  }
});

test("a signal that reaches no waiter recalls no claim", async () => {
  await server.set({ lock: RETAINABLE, fence: TOKEN });
  await server.run(conditionSignal, { owner: RETAINABLE, token: TOKEN, request: 1, most: 1 });
  await leave(1);
  expect(await told()).toEqual([]);
});

test("a recall is sent to the client's own channel, which is not sharded", async () => {
  await server.set({ lock: RETAINABLE, fence: TOKEN });
  await server.run(mutexAcquire, { owner: B, enqueue: 0, inbox: `${INBOX}{t}:` });
  expect(await told()).toEqual(["A ~1"]);
});
