import { describe, expect, it } from "vitest";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord, Operation } from "../src/history/records.js";
import { fairOrder, permitsWithinLimit, writersAlone } from "../src/sweeps/index.js";
import { operations } from "./histories.js";
import type { Sweep } from "./sweep-cases.js";
import { judged, lockName, queued } from "./sweep-cases.js";

describe("X1, permits within the limit", () => {
  const limit: Sweep = (records) => permitsWithinLimit(historyOf(records), new Map([[lockName, 3]]));
  judged(limit, "semaphore", [
    ["as many as there are", "ok", "A acquire 0-1 ok valid=90 permits=2", "B acquire 2-3 ok valid=90"],
    [
      "one too many",
      "violation",
      "A acquire 0-1 ok valid=90 permits=2",
      "B acquire 2-3 ok valid=90",
      "C acquire 4-5 ok valid=90",
    ],
    [
      "one too many, after a release",
      "ok",
      "A acquire 0-1 ok valid=90 permits=2",
      "B acquire 2-3 ok valid=90",
      "A release 4-9 ok permits=2",
      "C acquire 4-5 ok valid=90",
    ],
    [
      "within a raised limit",
      "ok",
      "A acquire 0-1 ok valid=90 permits=3",
      "X resize 2-3 ok permits=4",
      "B acquire 4-5 ok valid=90",
    ],
    [
      "beyond a lowered limit under which others were granted",
      "violation",
      "A acquire 0-1 ok valid=90 permits=2",
      "X resize 2-3 ok permits=2",
      "B acquire 4-5 ok valid=90",
    ],
    [
      "while the limit is lowered",
      "ok",
      "A acquire 0-1 ok valid=90 permits=2",
      "X resize 2-6 ok permits=2",
      "B acquire 4-5 ok valid=90",
    ],
    [
      "with a limit whose change has an unknown outcome",
      "ok",
      "X resize 2- info permits=4",
      "A acquire 3-4 ok valid=90 permits=4",
    ],
  ]);

  it("the maximum is reported", () => {
    const lines = ["A acquire 0-1 ok valid=90 permits=2", "B acquire 2-3 ok valid=90"];
    expect(limit(operations(lines, "semaphore")).figures.most).toBe(3);
  });
});

describe("X2, writers alone", () => {
  judged((records) => writersAlone(historyOf(records)), "read-write-lock", [
    ["readers together", "ok", "A acquire 0-1 ok valid=90 mode=read", "B acquire 2-3 ok valid=90 mode=read"],
    [
      "a writer beside a reader",
      "violation",
      "A acquire 0-1 ok valid=90 mode=read",
      "B acquire 2-3 ok valid=90 mode=write",
    ],
    [
      "a reader beside a writer",
      "violation",
      "A acquire 0-1 ok valid=90 mode=write",
      "B acquire 2-3 ok valid=90 mode=read",
    ],
    ["two writers", "violation", "A acquire 0-1 ok valid=90 mode=write", "B acquire 2-3 ok valid=90 mode=write"],
    [
      "a reader beside a writer that turned into a reader",
      "ok",
      "A acquire 0-1 ok valid=90 mode=write",
      "A downgrade 2-5 ok",
      "B acquire 3-4 ok valid=90 mode=read",
    ],
    [
      "a writer beside a writer that turned into a reader",
      "violation",
      "A acquire 0-1 ok valid=90 mode=write",
      "A downgrade 2-5 ok",
      "B acquire 6-7 ok valid=90 mode=write",
    ],
    [
      "a reader beside a reader that turned into the writer",
      "violation",
      "A acquire 0-1 ok valid=90 mode=read",
      "A upgrade 2-5 ok",
      "B acquire 6-7 ok valid=90 mode=read",
    ],
  ]);
});

describe("X3, first come, first served", () => {
  const sweep: Sweep = (records) => fairOrder(historyOf(records));
  judged(sweep, "mutex", [
    ["in order", "ok", "A acquire 0-10 ok token=5", "B acquire 5-20 ok token=6", queued(0, 2), queued(1, 6)],
    [
      "against the order",
      "violation",
      "A acquire 0-20 ok token=6",
      "B acquire 5-10 ok token=5",
      queued(0, 2),
      queued(1, 6),
    ],
    [
      "against the order by a caller that does not queue",
      "violation",
      "A acquire 0-20 ok token=6",
      "B acquire 5-10 ok token=5",
      queued(0, 2),
    ],
    [
      "in order, although the reply came later",
      "ok",
      "A acquire 0-20 ok token=5",
      "B acquire 5-10 ok token=6",
      queued(0, 2),
      queued(1, 6),
    ],
    ["against the order, without tokens", "violation", "A acquire 0-20 ok", "B acquire 5-10 ok", queued(0, 2)],
    ["past a waiter that still waits", "violation", "A acquire 0- ok", "B acquire 5-10 ok", queued(0, 2)],
    [
      "before the place was acknowledged",
      "empty",
      "A acquire 0-20 ok token=6",
      "B acquire 5-10 ok token=5",
      queued(0, 7),
    ],
  ]);

  it("waiters that gave up, died or were considered dead are excluded and listed", () => {
    const lines = [
      "A acquire 0-9 no gave-up",
      "B acquire 0- info",
      "C acquire 0-30 ok token=9",
      "D acquire 5-20 ok token=8",
    ];
    const missed: HistoryRecord = { type: "missed", atMs: 4, lockName, operationId: 2 };
    const { verdict, exclusions } = sweep([...operations(lines), queued(0, 1), queued(1, 1), queued(2, 1), missed]);
    expect(verdict).toBe("empty");
    expect(exclusions.map(({ record, reason }) => `${(record as Operation).owner}: ${reason}`)).toEqual([
      "A: it gave up",
      "B: its outcome is unknown",
      "C: it was considered dead",
    ]);
  });
});
