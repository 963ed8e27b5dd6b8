import { describe, expect, it } from "vitest";
import { compare } from "../src/compare.js";
import type { Conditions, Entry, Run } from "../src/measurements/entry.js";
import type { Measurement } from "../src/measurements/measurement.js";
import { target } from "../src/results.js";

// Nothing here reaches a server.
const CONDITIONS = { seconds: 1, repetitions: 3 } as Conditions;

function entry(name: string, role: Entry["role"], runs: readonly number[], yardstick?: string): Entry {
  let next = 0;
  return {
    name,
    role,
    ...(yardstick === undefined ? {} : { yardstick }),
    prepare: async () => ({
      async run(): Promise<Run> {
        const value = runs[next];
        next += 1;
        if (value === undefined) throw new Error("exclusion was broken");
        return { values: [value] };
      },
      async close() {},
    }),
  };
}

function measurement(entries: readonly Entry[], targets: Measurement["targets"] = () => []): Measurement {
  return {
    name: "some",
    title: () => "some",
    seconds: 1,
    figures: [{ name: "rate", unit: "1/s", digits: 0, better: "more" }],
    entries: () => entries,
    targets,
  };
}

const ratioToBest: Measurement["targets"] = (results) => [
  target("rate", results.ratio("ours", results.bestPeer("rate") ?? "", "rate"), { atLeast: 2 }, "×"),
];

describe("a comparison", () => {
  it("takes the median of the ratios of the same round, not the ratio of medians", async () => {
    const entries = [entry("raw", "raw", [10, 100, 1_000]), entry("ours", "own", [20, 100, 500], "raw")];
    const { outcomes } = await compare(measurement(entries), [], CONDITIONS, () => {});
    expect(outcomes[1]?.summaries[0]).toEqual({ median: 100, lowest: 20, highest: 500, ratio: 1 });
  });

  it("compares Holdfast with the best peer", async () => {
    const entries = [
      entry("ours", "own", [30, 30, 30]),
      entry("slow", "peer", [1, 1, 1]),
      entry("fast", "peer", [10, 10, 10]),
    ];
    const { targets } = await compare(measurement(entries, ratioToBest), [], CONDITIONS, () => {});
    expect(targets[0]).toMatchObject({ measured: "3 ×", bound: "≥ 2 ×", reached: true });
  });

  it("continues without a peer that fails, and says why", async () => {
    const entries = [
      entry("ours", "own", [30, 30, 30]),
      entry("broken", "peer", [99]),
      entry("fast", "peer", [20, 20, 20]),
    ];
    const { outcomes, targets } = await compare(measurement(entries, ratioToBest), [], CONDITIONS, () => {});
    expect(outcomes[1]).toMatchObject({ trouble: "exclusion was broken", summaries: [] });
    expect(targets[0]).toMatchObject({ measured: "1.5 ×", reached: false });
  });

  it("counts a target as missed if Holdfast fails", async () => {
    const entries = [entry("ours", "own", [30]), entry("fast", "peer", [1, 1, 1])];
    const { targets } = await compare(measurement(entries, ratioToBest), [], CONDITIONS, () => {});
    expect(targets[0]).toMatchObject({ measured: "ours failed: exclusion was broken", reached: false });
  });

  it("leaves a target open that cannot be decided without the peers", async () => {
    const entries = [
      entry("ours", "own", [30, 30, 30]),
      { name: "fast", role: "peer", prepare: { absent: "not run" } } as const,
    ];
    const { outcomes, targets } = await compare(measurement(entries, ratioToBest), [], CONDITIONS, () => {});
    expect(outcomes[1]).toMatchObject({ trouble: "not run" });
    expect(targets[0]).toMatchObject({ reached: null });
  });

  it("closes prepared libraries even if another one cannot be prepared", async () => {
    let isClosed = false;
    const entries: readonly Entry[] = [
      {
        name: "ours",
        role: "own",
        prepare: async () => ({
          run: async () => ({ values: [1] }),
          async close() {
            isClosed = true;
          },
        }),
      },
      { name: "peer", role: "peer", prepare: () => Promise.reject(new Error("it does not connect")) },
    ];
    const { outcomes } = await compare(measurement(entries), [], CONDITIONS, () => {});
    expect(outcomes[1]?.trouble).toBe("it does not connect");
    expect(isClosed).toBe(true);
  });
});
