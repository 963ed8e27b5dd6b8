import { describe, expect, it } from "vitest";
import { judgeLiveness } from "../src/faults/liveness/judge.js";
import { isMet, judgeMeasures, type Measure, textOf } from "../src/faults/liveness/measure.js";
import { CLIENT_LIBRARIES } from "../src/faults/liveness/messages.js";
import { grantsIn, longestWaitMs } from "../src/faults/liveness/rates.js";
import { scenarioOf, whyNotPlayed } from "../src/faults/liveness/table.js";
import { BESIDE, CELLS, isLiveness, LIVENESS, LIVENESS_CELLS } from "../src/faults/matrix.js";
import { quickCells, readOptions } from "../src/faults/options.js";
import { decide } from "../src/faults/outcome.js";
import { peerCells } from "../src/faults/subjects/peers.js";
import { subjectOf } from "../src/faults/subjects/table.js";
import { replayOf, summary } from "../src/faults/summary.js";
import type { CellVerdict } from "../src/faults/verdict.js";
import type { Fault, HistoryRecord } from "../src/history/records.js";
import { operations } from "./histories.js";

const GRANTED: Measure = { what: "the live waiter was granted after", value: 14.9, unit: "s", most: 16 };
const STRUCK: Fault = { type: "fault", id: "L01", beganMs: 0, endedMs: 90, target: "p3", proof: "it stood still" };

function cellOf(id: string): CellVerdict["cell"] {
  const cell = LIVENESS_CELLS.find((each) => each.id === id);
  if (cell === undefined) throw new Error(`no cell ${id}`);
  return cell;
}

function outcomeOf(records: readonly HistoryRecord[], measures: readonly Measure[], subject = "holdfast"): string {
  const cell = cellOf("L01/1n/m");
  const judgement = judgeLiveness(cell, subject, records, measures);
  return decide({ cell, subject, records, judgement, troubles: [] }).outcome;
}

describe("a measure", () => {
  it("shows its value, its unit and its target", () => {
    expect(textOf(GRANTED)).toBe("the live waiter was granted after 14.9 s (target <= 16 s)");
    expect(textOf({ what: "which is", value: 179.4, unit: "%", least: 90 })).toBe("which is 179 % (target >= 90 %)");
    expect(textOf({ what: "script calls:", value: 12, unit: "" })).toBe("script calls: 12");
    expect(textOf({ ...GRANTED, value: Number.POSITIVE_INFINITY })).toBe(
      "the live waiter was granted after: never (target <= 16 s)",
    );
  });

  it("meets its target at the bound and not beyond it", () => {
    expect(
      [14.9, 16, 16.001, Number.POSITIVE_INFINITY, Number.NaN].map((value) => isMet({ ...GRANTED, value })),
    ).toEqual([true, true, false, false, false]);
    const { most: _, ...share } = { ...GRANTED, least: 90 };
    expect([89.9, 90, Number.NaN].map((value) => isMet({ ...share, value }))).toEqual([false, true, false]);
  });

  it("is shown but not judged without a target", () => {
    const { most: _, ...shown } = GRANTED;
    expect(judgeMeasures("a", [{ ...shown, value: Number.POSITIVE_INFINITY }])).toEqual({ breaches: [], checked: 0 });
  });
});

describe("the judge of a liveness cell", () => {
  const apart = [...operations(["A acquire 0-2 ok valid=40 token=1", "B acquire 50-52 ok valid=90 token=2"]), STRUCK];

  it("passes a run that meets its targets", () => {
    expect(outcomeOf(apart, [GRANTED])).toBe("ok");
  });

  it("fails a grant that is too late, or never comes", () => {
    for (const value of [16.1, 300.2, Number.POSITIVE_INFINITY, Number.NaN])
      expect(outcomeOf(apart, [{ ...GRANTED, value }]), `${value}`).toBe("violation");
    const { breaches } = judgeLiveness(cellOf("L01/1n/m"), "holdfast", apart, [{ ...GRANTED, value: 300.2 }]);
    expect(breaches).toMatchObject([
      { property: "L8", message: "the live waiter was granted after 300.2 s (target <= 16 s)" },
    ]);
  });

  it("fails two holders and a falling token, however fast the callers were served", () => {
    const both = operations(["A acquire 0-2 ok valid=100 token=1", "B acquire 10-12 ok valid=100 token=2"]);
    expect(outcomeOf([...both, STRUCK], [GRANTED])).toBe("violation");
    const falls = operations(["A acquire 0-2 ok valid=5 token=2", "B acquire 10-12 ok valid=100 token=1"]);
    expect(outcomeOf([...falls, STRUCK], [GRANTED])).toBe("violation");
  });

  it("allows a semaphore of these runs one holder", () => {
    const lines = ["A acquire 0-2 ok valid=100 token=1", "B acquire 10-12 ok valid=100 token=2"];
    const both = operations(lines, "semaphore");
    const { breaches } = judgeLiveness(cellOf("L01/1n/s"), "holdfast", both, [GRANTED]);
    expect(breaches.map(({ property }) => property)).toEqual(["X1"]);
  });

  it("counts a run without a fault, and one without leases, as void", () => {
    expect(outcomeOf([...apart.slice(0, -1), { ...STRUCK, proof: null }], [GRANTED])).toBe("void");
    expect(outcomeOf([STRUCK], [GRANTED])).toBe("void");
  });
});

describe("rates and waits", () => {
  const records = operations([
    "A acquire 0-2 ok valid=5",
    "A acquire 10-30 no",
    "B acquire 20- info",
    "A acquire 30-31 ok valid=40",
  ]);

  it("counts grants of one process within a time", () => {
    const lockName = records[0]?.type === "operation" ? records[0].lockName : "";
    expect(grantsIn(records, { process: "A", lockName, fromMs: 0, untilMs: 100 })).toBe(2);
    expect(grantsIn(records, { process: "A", lockName, fromMs: 3, untilMs: 31 })).toBe(0);
    expect(grantsIn(records, { process: "B", lockName, fromMs: 0, untilMs: 100 })).toBe(0);
  });

  it("counts an unfinished wait until the end, and only the part inside the measured time", () => {
    const lockName = records[0]?.type === "operation" ? records[0].lockName : "";
    expect(longestWaitMs(records, { lockName, fromMs: 0, untilMs: 25 })).toBe(15);
    expect(longestWaitMs(records, { lockName, fromMs: 0, untilMs: 100 })).toBe(80);
    expect(longestWaitMs(records, { lockName, fromMs: 90, untilMs: 100 })).toBe(10);
  });
});

describe("the liveness cells", () => {
  it("have a scenario each, and unique names", () => {
    for (const { row } of LIVENESS) expect(scenarioOf(row).row).toBe(row);
    const all = [...CELLS, ...BESIDE, ...LIVENESS_CELLS].map(({ id }) => id);
    expect(new Set(all).size).toBe(all.length);
    expect(LIVENESS_CELLS.every((cell) => isLiveness(cell) && cell.expectation === "kept")).toBe(true);
  });

  it("are not part of the quick run for a change", () => {
    expect(quickCells().filter(isLiveness)).toEqual([]);
  });

  it("can be played with a stored build, both builds, and another client library", () => {
    const { cells, subjects, library } = readOptions([
      "--rows",
      "L01",
      "--columns",
      "1n",
      "--build",
      "present,protocol-0",
      "--client",
      "glide",
    ]);
    expect(cells.map(({ id }) => id)).toEqual(["L01/1n/m", "L01/1n/s"]);
    expect(subjects).toEqual(["holdfast", "holdfast@protocol-0"]);
    expect(library).toBe("glide");
    expect(() => readOptions(["--rows", "L01", "--build", "protocol-9"])).toThrow("no build protocol-9");
    expect(() => readOptions(["--rows", "J01", "--build", "protocol-0"])).toThrow("--build is for liveness cells");
    expect(() => readOptions(["--rows", "L01", "--client", "jedis"])).toThrow("no client jedis");
    // Without a row, this selects all liveness cells and no others.
    expect(readOptions(["--build", "protocol-0"]).cells).toEqual(LIVENESS_CELLS);
  });

  it("report why they are not played on servers that a client library cannot reach", () => {
    const played = (id: string): string[] =>
      CLIENT_LIBRARIES.filter((library) => whyNotPlayed(cellOf(id), "holdfast", library) === undefined);
    expect(played("L03/1n/m")).toEqual(["ioredis", "node-redis", "glide"]);
    expect(played("L03/T/m")).toEqual(["ioredis"]);
    expect(played("L03/C/m")).toEqual(["ioredis", "node-redis"]);
    expect(whyNotPlayed(cellOf("L01/1n/m"), "redlock", "glide")).toContain("brings");
  });

  it("run for peers that have what the fault strikes", async () => {
    const rowsOf = async (name: string): Promise<string[]> => [
      ...new Set(peerCells(await subjectOf(name), LIVENESS_CELLS).map(({ row }) => row)),
    ];
    expect(await rowsOf("redlock")).toEqual(["L01", "L02", "L07"]);
    expect(await rowsOf("simple-redis-mutex")).toEqual(["L01", "L02", "L03", "L04", "L05", "L07"]);
  });

  it("run for all peers only if the peers are named", () => {
    expect(readOptions(["--peers"]).cells.filter(isLiveness)).toEqual([]);
    expect(readOptions(["--peers", "--rows", "L01"]).cells.every(isLiveness)).toBe(true);
    expect(readOptions(["--peers", "--cells", "L01/1n/m"]).cells).toEqual([cellOf("L01/1n/m")]);
  });

  it("show their measurements, and how to replay a stored build", () => {
    const verdict: CellVerdict = {
      cell: cellOf("L01/1n/m"),
      seed: 1,
      subject: "holdfast@protocol-0",
      library: "glide",
      outcome: "violation",
      operations: 1,
      faults: 1,
      tookMs: 1,
      breaches: [],
      checked: {},
      notes: ["the live waiter was granted after 300.2 s (target <= 16 s)"],
    };
    expect(summary([verdict], 10_000)).toContain(
      "L01/1n/m (holdfast@protocol-0 on glide)\n  the live waiter was granted after 300.2 s",
    );
    expect(replayOf(verdict, 10_000)).toBe(
      "npm run verify:faults -- --cells L01/1n/m --seed 1 --seconds 10 --build protocol-0 --client glide",
    );
  });
});
