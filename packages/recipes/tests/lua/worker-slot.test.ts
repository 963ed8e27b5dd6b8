/** The notes about worker numbers when a reply or a request is late and belongs to another grant. */

import { createHoldfast, type Holdfast } from "holdfast";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Script } from "../../../holdfast/src/core/store.js";
import { ScriptServer } from "../../../holdfast/tests/lua/script-server.js";
import { recipesWorkerSlotBefore, recipesWorkerSlotEnd, recipesWorkerSlotKeep } from "../../src/generated/scripts.js";
import { type WorkerSlot, workerSlot } from "../../src/index.js";

const server = new ScriptServer();
const STATE = "hf:semaphore:{t}";
const ENDS = "hf:worker-slot:{t}";
const KEYS: Readonly<Record<string, string>> = {
  state: STATE,
  fence: `${STATE}:fence`,
  holders: `${STATE}:holders`,
  slots: `${STATE}:slots`,
  ends: ENDS,
};
const AHEAD_MS = 4_000_000_000_000;

let holdfast: Holdfast;
let slot: WorkerSlot;

beforeEach(async () => {
  holdfast = createHoldfast({ redis: server.redis, commandTimeoutMs: 20_000 });
  // The long lease means that no renewal runs during a test.
  slot = await workerSlot(holdfast, "t", { count: 2, leaseMs: 3_600_000 });
});
afterEach(() => holdfast.close());

async function send(script: Script, given: Readonly<Record<string, string | number>>): Promise<unknown> {
  const keys = script.keys.map((key) => KEYS[key] ?? "");
  return await server.redis.eval(
    script.source,
    keys.length,
    ...keys,
    ...script.args.map((name) => String(given[name])),
  );
}

/** `<end> <token> <end before>` */
async function note(): Promise<string[]> {
  return ((await server.redis.hget(ENDS, "0")) ?? "").split(" ");
}

test("a number without a previous holder has no previous end, and another grant's note is not read", async () => {
  expect(await send(recipesWorkerSlotBefore, { number: 0, token: slot.token })).toEqual([1, 0]);
  expect(await send(recipesWorkerSlotBefore, { number: 0, token: slot.token - 1 })).toBe(0);
  expect(await send(recipesWorkerSlotBefore, { number: 1, token: slot.token })).toBe(0);
});

test("a late end does not change the next holder's note", async () => {
  const noted = await note();
  expect(noted[1]).toBe(String(slot.token));
  const late = { number: 0, token: slot.token - 1, untilMs: 1_000 };
  expect(await send(recipesWorkerSlotEnd, late)).toBe(0);
  expect(await note()).toEqual(noted);
  expect(await send(recipesWorkerSlotEnd, { ...late, number: 1 })).toBe(0);
  expect(await server.redis.hlen(ENDS)).toBe(1);
});

test("an end is noted with its time, never earlier than the previous holder's end", async () => {
  const { token } = slot;
  expect(await send(recipesWorkerSlotEnd, { number: 0, token, untilMs: 2_000 })).toBe(1);
  expect(await note()).toEqual(["2000", String(token), "0"]);
  await server.redis.hset(ENDS, "0", `5000 ${token} 3000`);
  expect(await send(recipesWorkerSlotEnd, { number: 0, token, untilMs: 2_000 })).toBe(1);
  expect(await note()).toEqual(["3000", String(token), "3000"]);
});

test("a noted end only moves forward, and the previous holder's end stays next to it", async () => {
  const { owner, token } = slot;
  await server.redis.hset(ENDS, "0", "7000 1 6000");
  const keep = { owner, token, leaseMs: 60_000, untilMs: 5_000 };
  expect(await send(recipesWorkerSlotKeep, keep)).toBe(1);
  expect(await note()).toEqual(["7000", String(token), "7000"]);
  expect(await send(recipesWorkerSlotKeep, { ...keep, untilMs: 8_000 })).toBe(1);
  expect(await note()).toEqual(["8000", String(token), "7000"]);
  // A short lease must not shorten the lifetime of a note that a longer lease needs.
  expect(await server.redis.pttl(ENDS)).toBeGreaterThan(25 * 3_600_000 + 60_000);
});

test.each<[string, () => Promise<{ owner?: string; token?: number }>]>([
  [
    "whose lease is over",
    async () => {
      await server.redis.zadd(KEYS.holders as string, "XX", 1, slot.owner);
      return {};
    },
  ],
  ["of another owner", async () => ({ owner: "B/2/30000/1" })],
  ["of an earlier grant", async () => ({ token: slot.token - 1 })],
])("a number %s is not kept, and its note does not change", async (_, happen) => {
  const noted = await note();
  const other = await happen();
  const keep = { owner: slot.owner, token: slot.token, leaseMs: 60_000, untilMs: AHEAD_MS, ...other };
  expect([2, 3, 4]).toContain(await send(recipesWorkerSlotKeep, keep));
  expect(await note()).toEqual(noted);
});
