/** Which callers share a local queue, and which queues are kept. */
import { beforeEach, expect, test } from "vitest";
import type { LocalQueue } from "../../src/core/local-queue.js";
import { LocalQueues } from "../../src/core/local-queue.js";
import { DEFAULTS, type ResolvedOptions } from "../../src/core/options.js";
import { never, ScriptedLock } from "./scripted-lock.js";

/** This many locks may be idle before any queue is dropped. */
const KEPT = 1_024;

const OPTIONS: ResolvedOptions = { ...DEFAULTS, signal: undefined, amount: 1, waitMs: Infinity };

let world: ScriptedLock;
let cohorts: LocalQueues;
beforeEach(() => {
  world = new ScriptedLock();
  world.answers.acquire = never;
  cohorts = new LocalQueues(world.session);
});

function cohortOf(key: string, options: Partial<ResolvedOptions> = {}): LocalQueue {
  return cohorts.of({ ...world.protocol, name: key, key }, { ...OPTIONS, ...options });
}

/** A queue in which a caller waits from now on. */
function busy(key: string, options: Partial<ResolvedOptions> = {}): LocalQueue {
  const cohort = cohortOf(key, options);
  const ends = { held: () => {}, timedOut: () => {}, failed: () => {} };
  cohort.join({ ...world.protocol, name: key, key }, { ...OPTIONS, ...options }, ends);
  expect(cohort.isIdle).toBe(false);
  return cohort;
}

test("callers of one lock share a queue if lease, label and throughPause match", () => {
  const first = cohortOf("a");
  expect(cohortOf("a")).toBe(first);
  expect(cohortOf("b")).not.toBe(first);
  for (const other of [{ leaseMs: 1_000 }, { label: "x" }, { throughPause: true }]) {
    const second = cohortOf("a", other);
    expect(second).not.toBe(first);
    expect(cohortOf("a", other)).toBe(second);
  }
  expect(cohortOf("a")).toBe(first);
});

test("idle queues are kept until there are 1024 locks, then dropped", () => {
  const [idle, waiting] = [cohortOf("idle"), busy("waiting")];
  for (let i = 2; i < KEPT; i += 1) cohortOf(`lock ${i}`);
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("idle", { label: "another of a lock that is known" });
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("one more");
  expect(cohortOf("waiting")).toBe(waiting);
  expect(cohortOf("idle")).not.toBe(idle);
});

test("if many queues are busy, idle ones are kept until there are twice as many queues", () => {
  const waiting = Array.from({ length: KEPT }, (_, i) => busy(`waiting ${i}`));
  const idle = cohortOf("idle");
  for (let i = 1; i < KEPT; i += 1) cohortOf(`idle ${i}`);
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("one more");
  expect(cohortOf("idle")).not.toBe(idle);
  for (const [i, cohort] of waiting.entries()) expect(cohortOf(`waiting ${i}`)).toBe(cohort);
});

test("a lock keeps at most four idle queues, and every busy one", () => {
  const waiting = busy("a", { label: "waiting" });
  const labels = ["1", "2", "3"];
  const idle = labels.map((label) => cohortOf("a", { label }));
  for (const [i, label] of labels.entries()) expect(cohortOf("a", { label })).toBe(idle[i]);
  cohortOf("a", { label: "4" });
  expect(cohortOf("a", { label: "waiting" })).toBe(waiting);
  for (const [i, label] of labels.entries()) expect(cohortOf("a", { label })).not.toBe(idle[i]);
});
