import { expect, test } from "vitest";
import { toldByMs } from "../src/simulation/kinds/told.js";
import { type FaultEvent, type Plan, planOf } from "../src/simulation/plan.js";
import type { SimulatedProcess } from "../src/simulation/process.js";
import type { World } from "../src/simulation/world.js";

const TOLD_MS = 80;
/** A re-check, and a question that was lost twice. */
const ASKED_AGAIN_MS = 3_100 + 2 * 400;

/** When a call of p0 that began at 1 s, and was decided at 3 s, has to return. What was lost is given up after 400 ms. */
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

test("what goes wrong for its process makes it ask again", () => {
  expect(toldWith(cut(2_900))).toBe(3_400 + ASKED_AGAIN_MS + TOLD_MS);
});

test("and what was lost just before it called: all of the process wait for that answer", () => {
  expect(toldWith(cut(400))).toBe(900 + ASKED_AGAIN_MS + TOLD_MS);
});

test("and so does what goes wrong on the server", () => {
  expect(toldWith({ id: 1, atMs: 2_900, process: 1, what: "freeze-server", forMs: 500 })).toBe(
    3_400 + ASKED_AGAIN_MS + TOLD_MS,
  );
});

test.each([
  ["was over and given up before it called", cut(50)],
  ["begins when it should know", cut(3_100)],
  ["befalls another process", cut(2_900, 1)],
  ["hinders nobody", { id: 1, atMs: 0, process: 0, what: "drift", rate: 1.01 } as const],
])("what %s is no excuse", (_, fault) => {
  expect(toldWith(fault)).toBe(3_000 + TOLD_MS);
});

test("what begins before it is asked again makes it later still", () => {
  expect(toldWith(cut(2_900), cut(6_000))).toBe(6_500 + ASKED_AGAIN_MS + TOLD_MS);
});
