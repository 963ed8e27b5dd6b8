import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  CAPS,
  historyOf,
  leasesOf,
  OpenOperations,
  readHistory,
  readRecord,
  widths,
  writeHistory,
  writeRecord,
} from "../src/history/index.js";
import type { HistoryRecord } from "../src/history/records.js";
import { operations } from "./histories.js";

const ONE_OF_EACH: readonly HistoryRecord[] = [
  ...operations(["A acquire 0-1 ok token=5 valid=90", "A release 2- info", "B acquire 0-1 no gave-up wait=1"]),
  { type: "lost", atMs: 1, process: "A", lockName: "l", leaseId: 0 },
  { type: "held", atMs: 1, process: "A", lockName: "l", leaseId: 0, isHeld: true, token: 5, validUntilMs: null },
  { type: "turn", process: "A", beganMs: 0, endedMs: 1 },
  { type: "enqueued", atMs: 1, lockName: "l", operationId: 0 },
  { type: "missed", atMs: 1, lockName: "l", operationId: 0 },
  {
    type: "effect",
    atMs: 1,
    resource: "r",
    sequence: 1,
    process: "A",
    lockName: "l",
    leaseId: 0,
    token: null,
    isAccepted: true,
    isAcknowledged: false,
    value: "line\nbreak",
  },
  { type: "final-state", resource: "r", values: ["a"] },
  { type: "observation", operationId: 0, when: "after", atMs: 1, lockName: "l", owner: null, expiresAtMs: null },
  { type: "key-scan", atMs: 1, lockName: "l", owners: ["A"], isReachable: true },
  { type: "fault", id: "J03", beganMs: 1, endedMs: Number.POSITIVE_INFINITY, target: "A", proof: null },
  { type: "server", atMs: 1, name: "s", runId: "x", role: "master", clockMs: 1 },
];

describe("a history as text", () => {
  it("is read as it was written, with one line for each record", () => {
    const text = writeHistory(ONE_OF_EACH);
    expect(text.split("\n")).toHaveLength(ONE_OF_EACH.length + 1);
    expect(readHistory(text)).toEqual(ONE_OF_EACH);
  });

  it("keeps every name and every instant", () => {
    const [sample] = operations(["A acquire 0-1 ok"]);
    const instant = fc.double({ min: 0, max: 1e9, noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), instant, instant, (lockName, callMs, lengthMs) => {
        // JSON has no negative zero.
        const record = { ...sample, lockName, callMs: callMs + 0, returnMs: callMs + lengthMs } as HistoryRecord;
        expect(readRecord(writeRecord(record))).toEqual(record);
      }),
      { numRuns: 50 },
    );
  });

  it("may end in the middle of a line, as a killed recorder leaves it", () => {
    const text = writeHistory(ONE_OF_EACH);
    expect(readHistory(text.slice(0, -5))).toHaveLength(ONE_OF_EACH.length - 1);
    expect(readHistory(text.slice(0, -1))).toHaveLength(ONE_OF_EACH.length);
  });

  it.each([
    ["{", "Line 1"],
    ["17", "Not a record"],
    ['{"type":"dream"}', "Not a record"],
    ['{"type":"toString"}', "Not a record"],
    ['{"type":"lost","atMs":1,"process":"A"}', "lacks lockName, leaseId"],
  ])("that is broken elsewhere is an error: %s", (line, message) => {
    expect(() => readHistory(`${line}\n`)).toThrow(message);
  });

  it("shows a token that no double represents as one that F4 refuses", () => {
    const line = writeRecord(ONE_OF_EACH[0] as HistoryRecord).replace('"token":5', '"token":9007199254740993');
    expect(readRecord(line)).toMatchObject({ token: 2 ** 53 });
  });
});

it("records are grouped by type, each once", () => {
  const history = historyOf(ONE_OF_EACH);
  expect(Object.values(history).flat()).toHaveLength(ONE_OF_EACH.length);
  expect(history.operations).toHaveLength(3);
  expect(Object.values(history).every((list) => list.length > 0)).toBe(true);
});

describe("the validity that a holder relies on", () => {
  const claims = (lines: readonly string[], ...more: readonly HistoryRecord[]) =>
    leasesOf(historyOf([...operations(lines), ...more])).map((lease) =>
      lease.claims.map(({ startMs, endMs, mode }) => [startMs, endMs, ...(mode ? [mode] : [])]),
    );
  const held: HistoryRecord = {
    type: "held",
    atMs: 95,
    process: "A",
    lockName: "orders",
    leaseId: 0,
    isHeld: true,
    token: null,
    validUntilMs: 130,
  };

  it.each([
    ["begins at the return and ends with its validity", ["A acquire 0-5 ok valid=90"], [[[5, 90]]]],
    ["ends when release is called", ["A acquire 0-5 ok valid=90", "A release 20-30 ok"], [[[5, 20]]]],
    [
      "ends when release is called, whatever its outcome",
      ["A acquire 0-5 ok valid=90", "A release 20- info"],
      [[[5, 20]]],
    ],
    ["continues if release was not sent", ["A acquire 0-5 ok valid=90", "A release 20-21 no not-sent"], [[[5, 90]]]],
    ["is longer by an extend", ["A acquire 0-5 ok valid=90", "A extend 50-55 ok valid=150"], [[[5, 150]]]],
    [
      "has a gap if an extend came too late",
      ["A acquire 0-5 ok valid=90", "A extend 50-95 ok valid=150"],
      [
        [
          [5, 90],
          [95, 150],
        ],
      ],
    ],
    ["is nothing if nothing was reported", ["A acquire 0-5 ok"], [[]]],
    ["is nothing if the reply came after its validity", ["A acquire 0-95 ok valid=90"], [[]]],
    ["is nothing without a grant", ["A acquire 0-5 info", "A acquire 6-7 no busy"], []],
    [
      "changes its mode",
      ["A acquire 0-5 ok valid=90 mode=write", "A downgrade 20-30 ok", "A upgrade 50-60 ok"],
      [
        [
          [5, 20, "write"],
          [20, 60, "read"],
          [60, 90, "write"],
        ],
      ],
    ],
  ])("%s", (_, lines, expected) => {
    expect(claims(lines)).toEqual(expected);
  });

  it("is extended by a later sample", () => {
    expect(claims(["A acquire 0-5 ok valid=100"], held)).toEqual([[[5, 130]]]);
  });
});

describe("a lock name", () => {
  it("allows no more operations than its caps", () => {
    const open = new OpenOperations({ concurrent: 2, openInfo: 2 });
    open.began();
    open.began();
    expect(open.mayBegin).toBe(false);
    open.ended("ok");
    expect(open.mayBegin).toBe(true);
  });

  it("is used up permanently by unknown outcomes", () => {
    const open = new OpenOperations({ concurrent: 9, openInfo: 2 });
    for (const outcome of ["info", "no", "info"] as const) {
      open.began();
      open.ended(outcome);
    }
    expect([open.mayBegin, open.isWornOut]).toEqual([false, true]);
  });

  it("is as wide as the operations that are open at the same time; touching ones are", () => {
    const lines = ["A acquire 0-5 ok", "B acquire 5-6 ok", "C acquire 7-8 ok", "D acquire 0- info"];
    expect(widths(operations(lines))).toEqual([{ lockName: "orders", concurrent: 2, openInfo: 1 }]);
  });

  it("has the caps of the reference by default", () => {
    expect(CAPS).toEqual({ concurrent: 16, openInfo: 20 });
  });
});
