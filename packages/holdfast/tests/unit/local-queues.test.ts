/** Which callers share a cohort, and which cohorts are kept. */
import { beforeEach, expect, test } from "vitest";
import type { LocalQueue } from "../../src/core/local-queue.js";
import { LocalQueues } from "../../src/core/local-queue.js";
import { DEFAULTS, type ResolvedOptions } from "../../src/core/options.js";
import { never, ScriptedLock } from "./scripted-lock.js";

/** So many locks may be idle before any of them is forgotten. */
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

/** Somebody waits there from now on. */
function busy(key: string, options: Partial<ResolvedOptions> = {}): LocalQueue {
  const cohort = cohortOf(key, options);
  const ends = { held: () => {}, timedOut: () => {}, failed: () => {} };
  cohort.join({ ...world.protocol, name: key, key }, { ...OPTIONS, ...options }, ends);
  expect(cohort.isIdle).toBe(false);
  return cohort;
}

test("callers of one lock share one if they want the same length, label and way to meet a pause", () => {
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

test("idle ones are kept until there are a thousand locks; then those go in which nobody waits", () => {
  const [idle, waiting] = [cohortOf("idle"), busy("waiting")];
  for (let i = 2; i < KEPT; i += 1) cohortOf(`lock ${i}`);
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("idle", { label: "another of a lock that is known" });
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("one more");
  expect(cohortOf("waiting")).toBe(waiting);
  expect(cohortOf("idle")).not.toBe(idle);
});

test("where more than half of so many are waited in, they are looked through when they are twice as many, and not each time", () => {
  const waiting = Array.from({ length: KEPT }, (_, i) => busy(`waiting ${i}`));
  const idle = cohortOf("idle");
  for (let i = 1; i < KEPT; i += 1) cohortOf(`idle ${i}`);
  expect(cohortOf("idle")).toBe(idle);
  cohortOf("one more");
  expect(cohortOf("idle")).not.toBe(idle);
  for (const [i, cohort] of waiting.entries()) expect(cohortOf(`waiting ${i}`)).toBe(cohort);
});

test("of one lock four are kept, however many labels it has had, and those in which somebody waits", () => {
  const waiting = busy("a", { label: "waiting" });
  const labels = ["1", "2", "3"];
  const idle = labels.map((label) => cohortOf("a", { label }));
  for (const [i, label] of labels.entries()) expect(cohortOf("a", { label })).toBe(idle[i]);
  cohortOf("a", { label: "4" });
  expect(cohortOf("a", { label: "waiting" })).toBe(waiting);
  for (const [i, label] of labels.entries()) expect(cohortOf("a", { label })).not.toBe(idle[i]);
});
