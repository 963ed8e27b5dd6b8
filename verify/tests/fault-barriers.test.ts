import { describe, expect, test } from "vitest";

import { judgeBarriers } from "../src/faults/judging/barriers.js";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord, Operation } from "../src/history/records.js";

type Told = Pick<Operation, "outcome"> & Partial<Pick<Operation, "result" | "index">>;

function arrival(id: number, callMs: number, returnMs: number, told: Told, process = `p${id}`): Operation {
  return {
    type: "operation",
    id,
    process,
    incarnation: 0,
    lockName: "start",
    kind: "barrier",
    verb: "arrive",
    args: { waitMs: 1_000 },
    callMs,
    returnMs,
    owner: `o${id}`,
    leaseId: id,
    token: null,
    validUntilMs: null,
    ...told,
  };
}

const passed = (result: number, index: number): Told => ({ outcome: "ok", result, index });
const broke = (result: number): Told => ({ outcome: "no", result });
const found = (...records: readonly HistoryRecord[]): string[] =>
  judgeBarriers(historyOf(records), 250).found.map(({ property }) => property);

describe("the judge of barriers", () => {
  test("finds nothing wrong in generations that pass, break or get no reply, and counts those that passed", () => {
    const records = [
      arrival(1, 0, 12, passed(1, 0)),
      arrival(2, 10, 11, passed(1, 1)),
      arrival(3, 20, 30, broke(2)),
      arrival(4, 40, 52, passed(3, 1)),
      arrival(5, 41, Number.POSITIVE_INFINITY, { outcome: "info" }),
    ];
    const { found: breaches, checked } = judgeBarriers(historyOf(records), 250);
    expect(breaches).toEqual([]);
    expect(checked.S1).toBe(2);
  });

  test("finds a party that passed alone, even if another one was refused before it arrived", () => {
    expect(found(arrival(1, 0, 12, passed(1, 0)))).toEqual(["S1"]);
    expect(found(arrival(1, 0, 12, passed(1, 0)), arrival(2, 1, 2, { outcome: "no" }))).toEqual(["S1"]);
  });

  test("finds a generation that broke for one party and passed for the other", () => {
    expect(found(arrival(1, 0, 12, passed(1, 0)), arrival(2, 1, 13, broke(1)))).toContain("S1");
  });

  test("finds parties that passed before the last of them called", () => {
    expect(found(arrival(1, 0, 12, passed(1, 0)), arrival(2, 20, 21, passed(1, 1)))).toEqual(["S1"]);
  });

  test("finds a wait that continues past its time limit, unless its process was killed", () => {
    const kill: HistoryRecord = {
      type: "fault",
      id: "J03",
      beganMs: 5,
      endedMs: Infinity,
      target: "p1",
      proof: "seen",
    };
    expect(found(arrival(1, 0, 1_300, { outcome: "info" }))).toEqual(["L4"]);
    expect(found(arrival(1, 0, Infinity, { outcome: "info" }), arrival(2, 2_000, 2_001, broke(1)))).toEqual(["L4"]);
    expect(found(arrival(1, 0, Infinity, { outcome: "info" }), arrival(2, 2_000, 2_001, broke(1)), kill)).toEqual([]);
    expect(found(arrival(1, 0, Infinity, { outcome: "info" }), arrival(2, 900, 901, broke(1)))).toEqual([]);
  });
});
