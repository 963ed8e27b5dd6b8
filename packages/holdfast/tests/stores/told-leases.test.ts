/**
 * A client that renews a lease keeps reporting its length, because the failover marker forgets lengths that no client
 * reports.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Grace, Script } from "../../src/core/store.js";
import { mutexAcquire, mutexExtend, mutexInspect, mutexRenew } from "../../src/generated/scripts.js";
import { IF_OTHER_RUN } from "../../src/server/lineage.js";
import { ClusterFailoverGuard } from "../../src/stores/cluster-failover-guard.js";
import type { FailoverGuard } from "../../src/stores/failover-guard.js";
import { ServerFailoverGuard } from "../../src/stores/server-failover-guard.js";

const LONG_MS = 600_000;
const SHORT_MS = 5_000;
const MINUTE_MS = 60_000;

const told: number[] = [];
let guard: FailoverGuard;
let shards: FailoverGuard;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  told.length = 0;
  const grace: Grace = {
    marker: "hf:lineage",
    ifOtherRun: IF_OTHER_RUN,
    ask: (_run, _marker, leaseMs) => {
      told.push(leaseMs);
      return Promise.resolve({ outcome: "settled", longestMs: LONG_MS, run: "r" });
    },
    inspectSlot: () => Promise.resolve({ outcome: "whole", home: 0, run: "r", id: "n", others: [] }),
  };
  const run = (): Promise<never> => Promise.reject(new Error("nothing is run"));
  guard = new ServerFailoverGuard(grace, run);
  shards = new ClusterFailoverGuard(grace, run, { evalsha: () => Promise.resolve(1), load: () => Promise.resolve() });
});
afterEach(() => {
  vi.useRealTimers();
});

/**
 * Lets a minute pass and makes these calls; resolves to the reported lengths. The guard may report in the background.
 */
async function minute(...calls: [Script, readonly (string | number)[]][]): Promise<number[]> {
  vi.advanceTimersByTime(MINUTE_MS);
  for (const [script, args] of calls) {
    const call = { script, keys: ["k"], args, timeoutMs: 1_000 };
    if (guard.ready(call) === undefined) await guard.ask(call);
  }
  await new Promise(setImmediate);
  return told.splice(0);
}

const argsOf = (script: Script, leaseMs: number): (string | number)[] =>
  script.args.map((name) => (name === "leaseMs" ? leaseMs : 1));

test("a renewal reports its lease length, even without further grants", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  expect(await minute([mutexExtend, argsOf(mutexExtend, LONG_MS)])).toEqual([LONG_MS]);
});

test("a renewal in a cluster reports its lease length", async () => {
  guard = shards;
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  await minute();
  expect(await minute([mutexExtend, argsOf(mutexExtend, LONG_MS)])).toEqual([LONG_MS]);
});

test("a batch renewal reports its longest lease, even if shorter ones are granted meanwhile", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  await minute([mutexAcquire, argsOf(mutexAcquire, SHORT_MS)]);
  const tellings = await minute(
    [mutexRenew, [`a/1/1/1 7 ${SHORT_MS} a/2/1/1 8 ${LONG_MS}`, LONG_MS]],
    [mutexAcquire, argsOf(mutexAcquire, SHORT_MS)],
  );
  expect(Math.max(...tellings)).toBe(LONG_MS);
});

test("an inspection reports no lease length", async () => {
  await minute([mutexAcquire, argsOf(mutexAcquire, LONG_MS)]);
  expect(await minute([mutexInspect, argsOf(mutexInspect, 0)])).toEqual([]);
});
