import { describe, expect, test } from "vitest";
import { choose } from "../src/simulation/choose.js";
import { isOfOld } from "../src/simulation/drawn-since.js";
import { type FaultEvent, type Plan, planOf, reduced } from "../src/simulation/plan.js";
import { REGRESSION_SEEDS } from "../src/simulation/regression-seeds.js";
import { runPlan } from "../src/simulation/run.js";

/** This many seeds are enough to show the violation, with some margin. */
const SEARCHED = 100;

describe("a run that once failed", () => {
  test.each(REGRESSION_SEEDS)("passes unchanged: seed $seed, $was", async ({ seed, kind, profile }) => {
    const plan = choose(seed, kind, profile);
    const ids = [...plan.sessions, ...plan.faults].map(({ id }) => id);
    const { violations } = await runPlan(reduced(plan, new Set(ids.filter(isOfOld))));
    expect(violations).toEqual([]);
  });
});

/** A plan with these faults and no others, for each of its processes. */
function onlyWith(seed: number, fault: (process: number, id: number) => FaultEvent): Plan {
  const plan = planOf(seed, "mutex", "promised");
  return { ...plan, faults: Array.from({ length: plan.processCount }, (_, at) => fault(at, 1_001 + at)) };
}

describe("clocks at different rates", () => {
  const drifting = (rate: number) => (process: number, id: number) =>
    ({ id, atMs: 0, process, what: "drift", rate }) as const;

  test.each([0.99, 1.01])("violate nothing at the limit of the assumption: %d", async (rate) => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const { violations } = await runPlan(onlyWith(seed, drifting(rate)));
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });

  test("allow two holders beyond it", async () => {
    for (let seed = 1; seed <= SEARCHED; seed += 1) {
      const { violations } = await runPlan(onlyWith(seed, drifting(0.9)));
      if (violations.some(({ property }) => property === "S2")) return;
    }
    expect.unreachable("no seed shows two holders");
  });
});

describe("a connection that the client gives up", () => {
  test("delivers its requests after those of the next connection, and nothing is violated", async () => {
    let overtaken = 0;
    for (let seed = 1; seed <= 8; seed += 1) {
      const plan = onlyWith(seed, (process, id) => ({
        id,
        atMs: 100 * (process + 1),
        process,
        what: "overtake",
        forMs: 300,
        backInMs: 5,
        resends: seed % 2 === 0,
        lingersMs: 600,
      }));
      const { violations, trace } = await runPlan(plan, {}, true);
      expect(violations, `seed ${seed}`).toEqual([]);
      overtaken += overtakenIn(trace);
    }
    expect(overtaken).toBeGreaterThan(5);
  });
});

/** How many requests ran over an old connection after a later request of the same process. */
function overtakenIn(trace: readonly string[]): number {
  const latest = new Map<string, number>();
  let isOld = false;
  let overtaken = 0;
  for (const line of trace) {
    if (line.includes("arrives over the old connection")) isOld = true;
    const [, process, number] = /server: (p\d+)#(\d+) /.exec(line) ?? [];
    if (process === undefined) continue;
    const before = latest.get(process) ?? 0;
    if (isOld && before >= Number(number)) overtaken += 1;
    isOld = false;
    latest.set(process, Math.max(before, Number(number)));
  }
  return overtaken;
}
