import { describe, expect, it } from "vitest";
import { checkExclusion } from "../src/measurements/crowds.js";
import type { Section } from "../src/measurements/entry.js";
import { gapsBetweenProcesses } from "../src/measurements/gap.js";
import { jain, quantile } from "../src/statistics.js";
import { SectionLog } from "../src/worker/section-log.js";

function section(process: number, startedAtMs: number, endedAtMs: number): Section {
  return { process, caller: 0, askedAtMs: 0, startedAtMs, endedAtMs };
}

describe("recorded sections", () => {
  it("are refused if one began before the other ended, even slightly", () => {
    expect(() => checkExclusion([section(0, 1, 2), section(1, 1.999, 3)])).toThrow("exclusion was broken");
  });

  it("are accepted when each began where the last one ended", () => {
    expect(() => checkExclusion([section(0, 1, 2), section(1, 2, 3), section(1, 3, 3)])).not.toThrow();
  });

  it("have a gap only if the lock went to another process", () => {
    const sections = [section(0, 0, 1), section(0, 1.5, 2), section(1, 2.25, 3), section(0, 3.75, 4)];
    expect(gapsBetweenProcesses(sections)).toEqual([0.25, 0.75]);
  });

  it("are kept in their order beyond the first capacity of the log", () => {
    const log = new SectionLog();
    const sections = 40_000;
    for (let i = 0; i < sections; i += 1) log.add(i, i + 1, i + 2, i + 3);
    const numbers = log.toArray();
    expect(numbers).toHaveLength(sections * 4);
    expect([...numbers.slice(-4)]).toEqual([sections - 1, sections, sections + 1, sections + 2]);
  });
});

describe("statistics", () => {
  it("use the mean of the two middle values as the median of an even number of values", () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  });

  it("give a fairness of 1 if all have the same, and of 1/n if one has all", () => {
    expect(jain([3, 3, 3])).toBe(1);
    expect(jain([9, 0, 0])).toBeCloseTo(1 / 3);
  });
});
