import { describe, expect, test } from "vitest";

import { lostSignals } from "../src/faults/judging/signals.js";
import { historyOf } from "../src/history/index.js";
import type { Operation, Outcome } from "../src/history/records.js";

function call(verb: "wait" | "signal", outcome: Outcome, result?: number): Operation {
  return {
    type: "operation",
    id: 0,
    process: "p",
    incarnation: 0,
    lockName: "queue",
    kind: "condition",
    verb,
    args: {},
    callMs: 0,
    returnMs: 1,
    outcome,
    owner: verb,
    leaseId: 0,
    token: null,
    validUntilMs: null,
    ...(result === undefined ? {} : { result }),
  };
}

const found = (...calls: readonly Operation[]): string[] =>
  lostSignals(historyOf(calls)).found.map(({ property }) => property);

describe("the judge of signals", () => {
  test("finds a signal whose waiter did not continue", () => {
    expect(found(call("signal", "ok", 1), call("wait", "no"))).toEqual(["L3"]);
    expect(found(call("signal", "ok", 2), call("wait", "ok"), call("wait", "no"))).toEqual(["L3"]);
  });

  test("finds nothing wrong if all continued, if no waiter was reached, or if the outcome is unknown", () => {
    expect(found(call("signal", "ok", 1), call("wait", "ok"))).toEqual([]);
    expect(found(call("signal", "ok", 0), call("wait", "no"))).toEqual([]);
    expect(found(call("signal", "ok", 1), call("wait", "info"))).toEqual([]);
    expect(found(call("signal", "info"), call("wait", "no"))).toEqual([]);
  });

  test("reports the number of counted signals", () => {
    expect(lostSignals(historyOf([call("signal", "ok", 2), call("wait", "ok"), call("wait", "ok")])).checked).toBe(2);
  });
});
