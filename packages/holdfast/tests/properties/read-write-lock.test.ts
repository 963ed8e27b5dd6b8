import fc from "fast-check";
import { expect, test } from "vitest";
import { LONG_MS } from "../../src/testing/delays.js";
import { commonSteps, EVERYTHING, holdsFor, reweighStep, stealStep } from "./permits-programs.js";
import { RUNS } from "./runs.js";

test(
  `a read-write lock behaves like a sequential model in ${RUNS} random programs, including upgrades, downgrades and steals`,
  async () => {
    const weight = fc.constantFrom(1, 1, EVERYTHING);
    const steps = fc.oneof(
      ...commonSteps(weight, fc.constant(EVERYTHING)),
      reweighStep(weight),
      reweighStep(weight),
      stealStep(),
    );
    await holdsFor({ kind: "read-write-lock", numbered: 0, steps });
    expect(RUNS).toBeGreaterThan(0);
  },
  20 * LONG_MS,
);
