import { describe, expect, test } from "vitest";

import { leftOf, merge } from "../src/faults/recording.js";
import { GuardedResource } from "../src/faults/resource.js";
import type { HistoryRecord } from "../src/history/records.js";

function fault(id: string, beganMs: number, endedMs: number, target = "server"): HistoryRecord {
  return { type: "fault", id, beganMs, endedMs, target, proof: "seen" };
}

describe("the guarded resource", () => {
  test("accepts no lower token, and repeats its answer to a repeated request", async () => {
    const resource = await GuardedResource.open();
    try {
      const write = (value: string, token: number, isFenced = true): boolean =>
        resource.write({ resource: "r", lockName: "r", process: "A", leaseId: token, token, value, isFenced });
      expect([write("a", 5), write("b", 7), write("c", 5), write("a", 5), write("d", 5, false)]).toEqual([
        true,
        true,
        false,
        true,
        true,
      ]);
      expect(resource.effects.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
      expect(resource.finalStates).toEqual([{ type: "final-state", resource: "r", values: ["a", "b", "d"] }]);
    } finally {
      resource.close();
    }
  });
});

describe("a recording", () => {
  const begin = {
    line: "begin",
    id: 1,
    process: "c1#1",
    incarnation: 1,
    lockName: "x",
    kind: "mutex",
    verb: "acquire",
    args: {},
    owner: "?",
    leaseId: 1,
    callMs: 5,
  };
  const text = (...lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

  test("treats operations of a killed process as unknown", () => {
    const { records } = leftOf(`${text(begin, { line: "owner", id: 1, owner: "me" })}{"line":"end","id":1,"outc`);
    expect(records).toEqual([
      expect.objectContaining({ outcome: "info", returnMs: Number.POSITIVE_INFINITY, owner: "me" }),
    ]);
  });

  test("distinguishes a broken file from a short one", () => {
    expect(() => leftOf(`${text(begin)}{"line":\n${text(begin)}`)).toThrow(SyntaxError);
    expect(() => leftOf(text({ line: "end", id: 9 }))).toThrow(SyntaxError);
  });

  test("assigns a fault to the process that ran when the fault began", () => {
    const incarnations = [
      { name: "c1", process: "c1#1", sinceMs: 0 },
      { name: "c1", process: "c1#2", sinceMs: 100 },
    ];
    const records = [fault("J01", 50, 60, "c1"), fault("J01", 150, 160, "c1"), fault("J18", 150, 160)];
    const merged = merge([], { records, effects: [], finalStates: [], incarnations });
    expect(merged.map((record) => (record.type === "fault" ? record.target : ""))).toEqual(["c1#1", "c1#2", "server"]);
  });
});
