import fc from "fast-check";
import { expect, test } from "vitest";
import { LONG_MS } from "../../src/testing/delays.js";
import { commonSteps, holdsFor, reweighStep } from "./permits-programs.js";
import { RUNS } from "./runs.js";

const EVERYTHING = 1_000_000;

test(
  `a read-write lock behaves like a sequential model in ${RUNS} random programs, including upgrades and downgrades`,
  async () => {
    const weight = fc.constantFrom(1, 1, EVERYTHING);
    const steps = fc.oneof(...commonSteps(weight, fc.constant(EVERYTHING)), reweighStep(weight), reweighStep(weight));
    await holdsFor({ kind: "read-write-lock", numbered: 0, steps });
    expect(RUNS).toBeGreaterThan(0);
  },
  20 * LONG_MS,
);
