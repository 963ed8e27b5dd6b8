/** Whoever keeps a lease by renewing it goes on telling how long it is: a marker forgets what nobody tells. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Grace, Script } from "../../src/core/store.js";
import { mutexAcquire, mutexExtend, mutexInspect, mutexRenew } from "../../src/generated/scripts.js";
import type { Gate } from "../../src/stores/gate.js";
import { GraceGate } from "../../src/stores/grace.js";
import { ShardGate } from "../../src/stores/shard-gate.js";

const LONG_MS = 600_000;
const SHORT_MS = 5_000;
const MINUTE_MS = 60_000;

const told: number[] = [];
let gate: Gate;
let shards: Gate;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  told.length = 0;
  const grace: Grace = {
    marker: "hf:lineage",
    ask: (_run, _marker, leaseMs) => {
      told.push(leaseMs);
      return Promise.resolve({ outcome: "settled", longestMs: LONG_MS, run: "r" });
    },
    look: () => Promise.resolve({ outcome: "whole", home: 0, run: "r", id: "n", others: [] }),
  };
  const run = (): Promise<never> => Promise.reject(new Error("nothing is run"));
  gate = new GraceGate(grace, run);
  shards = new ShardGate(grace, { run, knows: () => Promise.resolve(true), load: () => Promise.resolve() });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A minute of calls, of which the gate may ask the server in the background. */
async function minute(...calls: [Script, readonly (string | number)[]][]): Promise<number[]> {
  vi.advanceTimersByTime(MINUTE_MS);
  for (const [script, args] of calls) {
    if (gate.ready(script, ["k"], args, 1_000) === undefined) await gate.ask(script, ["k"], 1_000);
  }
  await new Promise(setImmediate);
  return told.splice(0);
}

const argsOf = (script: Script, leaseMs: number): (string | number)[] =>
  script.args.map((name) => (name === "leaseMs" ? leaseMs : 1));

test("by renewing one lease, also where it is granted nothing more", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  expect(await minute([mutexExtend, argsOf(mutexExtend, LONG_MS)])).toEqual([LONG_MS]);
});

test("also in a cluster", async () => {
  gate = shards;
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  await minute();
  expect(await minute([mutexExtend, argsOf(mutexExtend, LONG_MS)])).toEqual([LONG_MS]);
});

test("by renewing many at once, also where it is granted shorter ones meanwhile", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  await minute([mutexAcquire, argsOf(mutexAcquire, SHORT_MS)]);
  const tellings = await minute(
    [mutexRenew, [`a/1/1/1 7 ${SHORT_MS} a/2/1/1 8 ${LONG_MS}`]],
    [mutexAcquire, argsOf(mutexAcquire, SHORT_MS)],
  );
  expect(Math.max(...tellings)).toBe(LONG_MS);
});

test("what asks for no lease tells nothing", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  expect(await minute([mutexInspect, argsOf(mutexInspect, 0)])).toEqual([]);
});
