/** What the judge of a simulated run expects of a lease that another process has begun to force-release. */
import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import type { HistoryRecord } from "../src/history/index.js";
import type { Draft } from "../src/simulation/draft.js";
import { LeaseWatch } from "../src/simulation/lease-watch.js";
import type { SimulatedProcess } from "../src/simulation/process.js";
import type { Recorder } from "../src/simulation/recorder.js";

const OWNER = "owner";

const PROCESS = {
  name: "p0",
  incarnation: 0,
  isDead: false,
  isFrozen: false,
  partedAtMs: Number.NEGATIVE_INFINITY,
  resumedAtMs: Number.NEGATIVE_INFINITY,
  longestTrueMs: (ms: number) => ms,
} as SimulatedProcess;

/** A watch over one lease of 100 ms, and its violations. */
function watched() {
  let nowMs = 0;
  let validUntilMs = 100;
  const violations: string[] = [];
  const records: HistoryRecord[] = [];
  const recorder = { add: (record: HistoryRecord) => records.push(record) } as unknown as Recorder;
  const lease = {
    owner: OWNER,
    token: 1,
    signal: new AbortController().signal,
    validForMs: () => Math.max(0, validUntilMs - nowMs),
  } as unknown as Lease;
  const watch = new LeaseWatch(
    () => nowMs,
    (property, text) => violations.push(`${property} ${text}`),
    recorder,
    true,
  );
  const view = watch.add({
    attempt: undefined,
    process: PROCESS,
    lease,
    own: lease,
    lockName: "orders",
    weight: 1,
    limit: 1,
    operation: { id: 1, token: 1, owner: OWNER } as Draft,
    turn: 0,
    isRenewed: true,
  });
  return {
    watch,
    view,
    violations,
    pass(ms: number) {
      nowMs += ms;
      watch.afterEvent();
    },
    extend(untilMs: number) {
      validUntilMs = untilMs;
      watch.extended(PROCESS, OWNER);
      watch.afterEvent();
    },
    lastValidUntilMs: () => records.findLast((record) => record.type === "held")?.validUntilMs,
  };
}

test("a lease that is extended during a forced release reports its validity", () => {
  const { watch, view, extend, lastValidUntilMs } = watched();
  watch.taken(view);
  extend(300);
  expect(lastValidUntilMs()).toBe(300);
});

test("a lease ends with its signal, even during a forced release", () => {
  const { watch, view, pass, violations } = watched();
  watch.taken(view);
  pass(99);
  expect(violations).toEqual([]);
  pass(2_000);
  expect(violations).toEqual([
    "S4 p0: a lease of orders ended without a report",
    expect.stringMatching(/^S4 p0: the loss of orders was reported after/),
  ]);
});

test("a released lease is no longer queried", () => {
  const { watch, view, pass, violations } = watched();
  watch.taken(view);
  watch.over(view);
  pass(2_000);
  expect(violations).toEqual([]);
});
