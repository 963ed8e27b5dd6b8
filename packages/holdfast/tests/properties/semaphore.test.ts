import fc from "fast-check";
import { expect, test } from "vitest";
import { LONG_MS } from "../../src/testing/delays.js";
import { commonSteps, holdsFor, RUNS, type Step } from "./permits-programs.js";

test(
  `${RUNS} random programs on a semaphore do what a sequential model does, with every number, token and message`,
  async () => {
    const declared = fc.constantFrom(5, 5, 5, 5, 7);
    const resize: fc.Arbitrary<Step> = fc.record({
      verb: fc.constant("resize"),
      capacity: fc.integer({ min: 1, max: 8 }),
      declared,
    });
    const steps = fc.oneof(...commonSteps(fc.integer({ min: 1, max: 5 }), declared), resize);
    await holdsFor({ kind: "semaphore", numbered: 3, steps });
    expect(RUNS).toBeGreaterThan(0);
  },
  20 * LONG_MS,
);
