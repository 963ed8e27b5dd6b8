import { expect, test } from "vitest";
import { toldByMs } from "../src/simulation/kinds/told.js";
import { type FaultEvent, type Plan, planOf } from "../src/simulation/plan.js";
import type { SimulatedProcess } from "../src/simulation/process.js";
import type { World } from "../src/simulation/world.js";

const TOLD_MS = 80;
/** A re-check, and a request that was lost twice. */
const ASKED_AGAIN_MS = 3_100 + 2 * 400;

/** When a call of p0 that began at 1 s and was decided at 3 s must return. Lost requests time out after 400 ms. */
function toldWith(...faults: FaultEvent[]): number {
  const setup: Plan = { ...planOf(1, "barrier", "none"), commandTimeoutMs: 400, faults };
  const process = { name: "p0", longestTrueMs: (ms: number) => ms } as SimulatedProcess;
  return toldByMs({ setup } as World, { process, callMs: 1_000, decidedMs: 3_000 });
}

const cut = (atMs: number, process = 0): FaultEvent => ({
  id: 1,
  atMs,
  process,
  what: "cut-inbox",
  backInMs: 500,
  goneInMs: 0,
});

test("without a fault, the waiter is notified immediately", () => {
  expect(toldWith()).toBe(3_000 + TOLD_MS);
});

test("a fault of its process makes it ask again", () => {
  expect(toldWith(cut(2_900))).toBe(3_400 + ASKED_AGAIN_MS + TOLD_MS);
});

test("so does a request lost just before the call: all callers of the process await its reply", () => {
  expect(toldWith(cut(400))).toBe(900 + ASKED_AGAIN_MS + TOLD_MS);
});

test("so does a fault of the server", () => {
  expect(toldWith({ id: 1, atMs: 2_900, process: 1, what: "freeze-server", forMs: 500 })).toBe(
    3_400 + ASKED_AGAIN_MS + TOLD_MS,
  );
});

test.each([
  ["ended, with its requests timed out, before the call", cut(50)],
  ["begins when it should already know", cut(3_100)],
  ["affects another process", cut(2_900, 1)],
  ["hinders no process", { id: 1, atMs: 0, process: 0, what: "drift", rate: 1.01 } as const],
])("a fault that %s is no excuse", (_, fault) => {
  expect(toldWith(fault)).toBe(3_000 + TOLD_MS);
});

test("a fault before its next request delays it further", () => {
  expect(toldWith(cut(2_900), cut(6_000))).toBe(6_500 + ASKED_AGAIN_MS + TOLD_MS);
});
