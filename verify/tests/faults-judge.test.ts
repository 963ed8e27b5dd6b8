import { describe, expect, test } from "vitest";

import type { Cell, Letter } from "../src/faults/cell.js";
import { judge } from "../src/faults/judge.js";
import { lateAcquires } from "../src/faults/judging/late-requests.js";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord, Kind } from "../src/history/records.js";
import { operations } from "./histories.js";

const CONTEXT = { subject: "holdfast", commandTimeoutMs: 500 };

function cellOf(letter: Letter): Cell {
  return {
    id: `none/1n/${letter}`,
    row: "none",
    column: "1n",
    letter,
    expectation: "kept",
    judged: "leases",
    isQuick: false,
  };
}

/** The violated properties, without duplicates. */
function broken(letter: Letter, kind: Kind, lines: readonly string[], more: readonly HistoryRecord[] = []): string[] {
  const { breaches } = judge(cellOf(letter), historyOf([...operations(lines, kind), ...more]), CONTEXT);
  return [...new Set(breaches.map(({ property }) => property))].sort();
}

function fault(id: string, beganMs: number, endedMs: number, target = "server"): HistoryRecord {
  return { type: "fault", id, beganMs, endedMs, target, proof: "seen" };
}

describe("the judge of a peer that states no validity", () => {
  const said = (leaseId: number, atMs: number, isHeld: boolean): HistoryRecord => ({
    type: "held",
    atMs,
    process: "A",
    lockName: "lock",
    leaseId,
    isHeld,
    token: null,
    validUntilMs: null,
  });

  /** The violated properties, and the number of decided cases of exclusion. */
  function judged(subject: string, saidUntilMs: number): readonly [properties: string[], cases: number] {
    const held = operations(["A acquire 0-2 ok", "B acquire 50-52 ok", "B release 60-61 ok"]);
    const [first, second] = held;
    const history = historyOf([
      ...held,
      said(first?.type === "operation" ? first.id : 0, saidUntilMs, true),
      said(first?.type === "operation" ? first.id : 0, 80, false),
      said(second?.type === "operation" ? second.id : 0, 59, true),
    ]);
    const { breaches, checked } = judge(cellOf("m"), history, { ...CONTEXT, subject });
    return [[...new Set(breaches.map(({ property }) => property))].sort(), checked.S2 ?? 0];
  }

  test("counts it as holding from its grant until it last reported so, only for exclusion", () => {
    expect(judged("redis-semaphore", 40)[0]).not.toContain("S2");
    expect(judged("redis-semaphore", 40)[1]).toBe(2);
    expect(judged("redis-semaphore", 70)[0]).toContain("S2");
    expect(judged("redis-semaphore", 70)[0]).not.toContain("S4");
  });

  test("does not do that for Holdfast", () => {
    expect(judged("holdfast", 70)[0]).not.toContain("S2");
    expect(judged("holdfast", 70)[1]).toBe(0);
  });
});

describe("the judge of a fault run", () => {
  test("finds nothing if nothing is wrong, and reports how much it checked", () => {
    const lines = [
      "A acquire 0-2 ok token=1 valid=900",
      "A release 10-12 ok",
      "B acquire 3-13 ok token=2 valid=990",
      "B release 20-21 ok",
    ];
    const { breaches, checked, unknown } = judge(cellOf("m"), historyOf(operations(lines)), CONTEXT);
    expect(breaches).toEqual([]);
    expect(unknown).toBe(0);
    for (const property of ["S1", "S2", "S3", "F1", "F2", "L3"]) expect(checked[property], property).toBeGreaterThan(0);
  });

  test.each<[string, Letter, Kind, string[], string[]]>([
    [
      "two holders",
      "m",
      "mutex",
      [
        "A acquire 0-2 ok token=1 valid=900",
        "B acquire 10-12 ok token=2 valid=990",
        "A release 50-51 no not-owner",
        "B release 60-61 ok",
      ],
      ["S1", "S2"],
    ],
    [
      "a repeated token",
      "t",
      "mutex",
      [
        "A acquire 0-2 ok token=5 valid=900",
        "A release 3-4 ok",
        "B acquire 10-12 ok token=5 valid=900",
        "B release 13-14 ok",
      ],
      ["F1", "F2", "S1"],
    ],
    [
      "a reader beside the writer",
      "w",
      "read-write-lock",
      [
        "A acquire 0-2 ok mode=write token=1 valid=900",
        "B acquire 10-12 ok mode=read token=2 valid=900",
        "A release 20-21 ok",
        "B release 22-23 ok",
      ],
      ["S1", "X2"],
    ],
    [
      "more permits than there are",
      "s",
      "semaphore",
      [
        "A acquire 0-2 ok permits=2 token=1 valid=900",
        "B acquire 10-12 ok permits=2 token=2 valid=900",
        "A release 20-21 ok permits=2",
        "B release 22-23 ok permits=2",
      ],
      ["S1", "X1"],
    ],
    [
      "a lock that is free but not granted",
      "m",
      "mutex",
      [
        "A acquire 0-2 ok token=1 valid=900",
        "A release 10-12 ok",
        "B acquire 5-9000 ok token=2 valid=9500 lease=500",
        "B release 9001-9002 ok",
      ],
      ["L3"],
    ],
    [
      "permits that are free but not granted",
      "s",
      "semaphore",
      [
        "A acquire 0-2 ok permits=3 token=1 valid=900",
        "A release 10-12 ok permits=3",
        "B acquire 5-9000 ok permits=2 token=2 valid=9500 lease=500",
        "B release 9001-9002 ok permits=2",
      ],
      ["L3"],
    ],
    [
      "a reader that is not granted after the writer",
      "w",
      "read-write-lock",
      [
        "A acquire 0-2 ok mode=write token=1 valid=900",
        "A release 10-12 ok",
        "B acquire 5-9000 ok mode=read token=2 valid=9500 lease=500",
        "B release 9001-9002 ok",
      ],
      ["L3"],
    ],
    ["a wait that continues past its time limit", "m", "mutex", ["A acquire 0-5000 no gave-up wait=100"], ["L4"]],
    [
      "a latch that opens before its count is zero",
      "l",
      "count-down-latch",
      ["A set-count 0-1 ok count=2", "B await 2-3 ok wait=10"],
      ["S1"],
    ],
  ])("finds %s", (_, letter, kind, lines, found) => {
    expect(broken(letter, kind, lines)).toEqual(found);
  });

  test("treats a count-down's reply as that of a copy only if it took as long as a resent request", () => {
    const lines = ["A set-count 0-1 ok count=3", "B count-down 10-600 ok result=1", "C count-down 12-40 ok result=1"];
    expect(broken("l", "count-down-latch", lines), "B was answered once more, after C").toEqual([]);
    const quick = lines.map((line) => line.replace("10-600", "10-300"));
    expect(broken("l", "count-down-latch", quick), "nothing was resent so soon").toEqual(["S1"]);
    expect(broken("l", "count-down-latch", quick, [fault("J15", 5, 15)]), "but for a cut connection").toEqual([]);
  });

  test("expects no grant beside a client that may still hold", () => {
    const lines = [
      "A acquire 0-2 ok permits=2 token=1 valid=900",
      "C acquire 0-2 ok permits=1 token=2 valid=9900 lease=10000",
      "A release 10-12 ok permits=2",
      "B acquire 5-9000 ok permits=3 token=3 valid=9500 lease=500",
    ];
    expect(broken("s", "semaphore", [...lines, "C release 8990-8991 ok permits=1"])).toEqual([]);
    expect(broken("s", "semaphore", [...lines, "C release 20-21 ok permits=1"])).toEqual(["L3"]);
  });

  test("finds an owner left in a key after it gave up, unless the server returned with an older state", () => {
    const records: HistoryRecord[] = [
      ...operations(["A acquire 0-100 no gave-up wait=100"]),
      fault("J26", 200, 300),
      { type: "key-scan", atMs: 6_000, lockName: "orders", owners: ["A"], isReachable: true },
    ];
    const of = (row: string, expectation: Cell["expectation"]): string[] =>
      judge({ ...cellOf("m"), row, expectation }, historyOf(records), CONTEXT).breaches.map(({ property }) => property);
    expect(of("J26", "broken")).toEqual([]);
    expect(of("J24", "kept")).toEqual(["L4"]);
    expect(of("J25", "broken")).toEqual(["L4"]);
  });

  test("finds a success without a reply", () => {
    const lines = ["A acquire 0-2 ok token=1 valid=900", "A extend 3-5 ok token=1 valid=950", "A release 6-8 ok"];
    const answers = [1, 4, 7];
    const breached = (wrong: number, answeredMs: number | null): string[] => {
      const records = operations(lines).map((record, at) => ({
        ...record,
        answeredMs: at === wrong ? answeredMs : answers[at],
      }));
      return judge(cellOf("m"), historyOf(records as HistoryRecord[]), CONTEXT).breaches.map(
        ({ property, message }) => `${property} ${message.split(" ")[0]}`,
      );
    };
    expect(breached(-1, null)).toEqual([]);
    for (const [at, verb] of ["acquire", "extend", "release"].entries()) {
      expect(breached(at, null), "never answered").toEqual([`S5 ${verb}`]);
      expect(breached(at, 9), "answered after it").toEqual([`S5 ${verb}`]);
    }
  });

  test("finds a caller that overtook a waiter, and excuses it if the waiter was cut off meanwhile", () => {
    const lines = [
      "A acquire 0-2 ok token=1 valid=900",
      "A release 50-51 ok",
      "B acquire 5-80 ok token=3 valid=900",
      "B release 81-82 ok",
      "C acquire 20-60 ok token=2 valid=900",
      "C release 61-62 ok",
    ];
    const queued: HistoryRecord = { type: "enqueued", atMs: 10, lockName: "orders", operationId: 2 };
    expect(broken("f", "mutex", lines, [queued])).toEqual(["X3"]);
    expect(broken("f", "mutex", lines, [queued, fault("J02", 30, 40, "B")])).toEqual([]);
    expect(broken("f", "mutex", lines, [queued, fault("J02", 30, 40, "C")])).toEqual(["X3"]);
  });

  test("finds interleaved effects of two holders, and draws them", () => {
    const lines = [
      "A acquire 0-2 ok token=1 valid=900",
      "A release 30-31 ok",
      "B acquire 40-42 ok token=2 valid=900",
      "B release 60-61 ok",
    ];
    const resource = effects([
      ["A", 0, 1],
      ["B", 2, 2],
      ["A", 0, 1],
    ]);
    const history = historyOf([...operations(lines), ...resource]);
    const { breaches } = judge({ ...cellOf("m"), judged: "effects" }, history, CONTEXT);
    expect(breaches.map(({ property }) => property)).toEqual(["E1"]);
    expect(breaches[0]?.picture).toContain("<svg");
  });

  test("relies on the server's clock until a fault changes it", () => {
    const lines = [
      "A acquire 0-2 ok token=1 lease=1000",
      "B acquire 100-102 ok token=2 valid=600 lease=1000",
      "B release 200-201 ok",
    ];
    expect(broken("m", "mutex", lines)).toEqual(["S1"]);
    expect(broken("m", "mutex", lines, [fault("J29", 50, 60)])).toEqual([]);
    expect(broken("m", "mutex", lines, [fault("J21", 50, 60)])).toEqual(["S1"]);
  });

  test("knows a claim that got the lock through a recorded late copy, and no other", () => {
    const lines = [
      "A acquire 0-2 ok token=1 lease=100",
      "A release 10-12 ok",
      "B acquire 40-41 no busy",
      "C acquire 50-130 ok token=2 lease=100",
    ];
    const late = (script: string, atMs: number, name = "orders"): HistoryRecord => ({
      type: "fault",
      id: "J12",
      beganMs: 0,
      endedMs: 30,
      target: "line",
      proof: "lateArrivals 1",
      late: [{ atMs, words: ["EVALSHA", script, "1", `hf:mutex:{${name}}`, "client/7/100/1", "100", "hf:in:"] }],
    });
    expect(broken("m", "mutex", lines)).toEqual(["S1"]);
    expect(broken("m", "mutex", lines, [late("mutex/acquire", 30)])).toEqual([]);
    expect(broken("m", "mutex", lines, [late("mutex/acquire", 60)])).toEqual(["S1"]);
    expect(broken("m", "mutex", lines, [late("mutex/acquire", 30, "other")])).toEqual(["S1"]);
    expect(broken("m", "mutex", lines, [late("mutex/release", 30)])).toEqual(["S1"]);
  });

  test("knows each lock that a late copy of one request took, each by its own claim", () => {
    const lines = [
      "A acquire 0-2 ok token=1 lease=100",
      "A release 10-12 ok",
      "B acquire 40-41 no busy",
      "C acquire 50-130 ok token=2 lease=100",
    ];
    const keys = ["other", "orders"].flatMap((name) =>
      ["", ":fence", ":queue"].map((part) => `hf:mutex:{${name}}${part}`),
    );
    const late = (...owners: string[]): HistoryRecord => ({
      type: "fault",
      id: "J12",
      beganMs: 0,
      endedMs: 30,
      target: "line",
      proof: "lateArrivals 1",
      late: [{ atMs: 30, words: ["EVALSHA", "multi-lock/acquire", "6", ...keys, "100", owners.join(" ")] }],
    });
    expect(broken("k", "multi-lock", lines)).toEqual(["S1"]);
    expect(broken("k", "multi-lock", lines, [late("client/7/100/1", "client/8/100/1/a%20label")])).toEqual([]);
    const both = late("client/7/100/1", "client/8/50/1");
    const claims = (name: string): unknown[] =>
      lateAcquires(both.type === "fault" ? [both] : [], name, "multi-lock").map(({ owner, args }) => [owner, args]);
    expect(claims("other")).toEqual([["client/7/100/1~late", { leaseMs: 100 }]]);
    expect(claims("orders")).toEqual([["client/8/50/1~late", { leaseMs: 50 }]]);
  });
});
function effects(writes: readonly (readonly [process: string, leaseId: number, token: number])[]): HistoryRecord[] {
  return writes.map(([process, leaseId, token], index) => ({
    type: "effect",
    atMs: 10 * index,
    resource: "orders",
    sequence: index + 1,
    process,
    lockName: "orders",
    leaseId,
    token,
    isAccepted: true,
    isAcknowledged: true,
    value: `${process}${index}`,
  }));
}
