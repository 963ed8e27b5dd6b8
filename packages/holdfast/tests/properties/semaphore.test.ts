import fc from "fast-check";
import { expect, test } from "vitest";
import { LONG_MS } from "../../src/testing/delays.js";
import { commonSteps, holdsFor, type Step } from "./permits-programs.js";
import { RUNS } from "./runs.js";

test(
  `a semaphore behaves like a sequential model in ${RUNS} random programs: same slots, tokens, and messages`,
  async () => {
    const declared = fc.constantFrom(5, 5, 5, 5, 7);
    const resize: fc.Arbitrary<Step> = fc.record({
      verb: fc.constant("resize"),
      capacity: fc.integer({ min: 1, max: 8 }),
      declared,
    });
    const steps = fc.oneof(...commonSteps(fc.integer({ min: 1, max: 5 }), declared), resize);
    const asked = (weight: number): Step => ({
      ...{ verb: "acquire", client: 0, weight, leaseMs: 100, enqueue: true, declared: 5 },
    });
    // Once a waiter takes the last permit, no waiter behind it is checked, not even for requesting too many permits.
    const known: Step[] = [
      ...[2, 4, 1, 4].map(asked),
      { verb: "resize", capacity: 3, declared: 5 },
      { verb: "leave", pick: 0 },
    ];
    await holdsFor({ kind: "semaphore", numbered: 3, steps, known: [known] });
    expect(RUNS).toBeGreaterThan(0);
  },
  20 * LONG_MS,
);
