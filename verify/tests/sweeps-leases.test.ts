import { describe, expect, it } from "vitest";

import { historyOf } from "../src/history/index.js";
import { leaseExclusion, loudLoss, ownersOnly } from "../src/sweeps/index.js";
import { operations } from "./histories.js";
import { judged, lost, sample, seen, turn } from "./sweep-cases.js";

const interrupted: typeof turn = (...at) => ({ ...turn(...at), wasInterrupted: true });

describe("S2, one holder at a time", () => {
  judged((records) => leaseExclusion(historyOf(records)), "mutex", [
    ["nothing granted", "empty", "A acquire 0-1 no busy"],
    [
      "released before the next is granted",
      "ok",
      "A acquire 0-1 ok valid=900",
      "A release 5-9 ok",
      "B acquire 2-7 ok valid=900",
    ],
    [
      "granted while the first is relied upon",
      "violation",
      "A acquire 0-1 ok valid=900",
      "B acquire 2-7 ok valid=900",
      "A release 8-9 ok",
    ],
    [
      "granted when the first is no longer valid",
      "ok",
      "A acquire 0-1 ok valid=900",
      "B acquire 850-901 ok valid=1800",
    ],
    [
      "granted when the first is extended",
      "violation",
      "A acquire 0-1 ok valid=900",
      "A extend 500-501 ok valid=1400",
      "B acquire 850-901 ok valid=1800",
    ],
    [
      "granted while the first reports that it is held",
      "violation",
      "A acquire 0-1 ok valid=900",
      "B acquire 850-901 ok valid=1800",
      sample(0, 890, true, { validUntilMs: 1300 }),
    ],
    [
      "granted after a forced release",
      "ok",
      "A acquire 0-1 ok valid=900",
      "C force-release 5-6 ok of=0",
      "B acquire 7-8 ok valid=900",
    ],
    [
      "two leases of one owner, which only re-entry allows",
      "violation",
      "A acquire 0-1 ok valid=900",
      "A acquire 2-7 ok valid=900",
    ],
    [
      "an overlap with a long lease behind a short one",
      "violation",
      "A acquire 0-1 ok valid=900",
      "B acquire 2-3 ok valid=4",
      "C acquire 5-6 ok valid=9",
    ],
  ]);
  judged((records) => leaseExclusion(historyOf(records)), "reentrant-mutex", [
    ["two leases of one owner", "ok", "A acquire 0-1 ok valid=900", "A acquire 2-7 ok valid=900"],
  ]);

  it("the smallest gap is reported, and is negative in an overlap", () => {
    const gap = (lines: readonly string[]): number | undefined =>
      leaseExclusion(historyOf(operations(lines))).figures.smallestGapMs;
    expect(gap(["A acquire 0-1 ok valid=10", "B acquire 5-14 ok valid=20", "C acquire 5-27 ok valid=30"])).toBe(4);
    expect(gap(["A acquire 0-1 ok valid=10", "B acquire 5-7 ok valid=20"])).toBe(-3);
    expect(gap(["A acquire 0-1 ok valid=10"])).toBeUndefined();
  });
});

describe("S3, only the owner's verbs", () => {
  const held = ["A acquire 0-1 ok valid=900", "B release 10-12 no not-owner"] as const;
  judged((records) => ownersOnly(historyOf(records), { epsMs: 1 }), "mutex", [
    ["the owner's", "ok", "A acquire 0-1 ok valid=900", "A extend 2-3 ok valid=910", "A release 4-5 ok"],
    ["by a client that never had it", "violation", "A acquire 0-1 ok valid=900", "B extend 2-3 ok"],
    ["by a client that may have it", "ok", "A acquire 0-1 info", "A release 2-3 ok"],
    ["by a client that released it", "violation", "A acquire 0-1 ok valid=900", "A release 2-3 ok", "A release 4-5 ok"],
    [
      "while another client holds it",
      "violation",
      "A acquire 0-1 ok valid=10",
      "B acquire 20-21 ok valid=900",
      "A extend 30-31 ok",
    ],
    ["a refusal without a trace", "ok", ...held, seen(1, "before", 9, "A", 1000), seen(1, "after", 13, "A", 1000.5)],
    [
      "a refusal that freed it",
      "violation",
      ...held,
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, null, null),
    ],
    ["a refusal while it expired", "ok", ...held, seen(1, "before", 9, "A", 12), seen(1, "after", 13, null, null)],
    [
      "a refusal that extended it",
      "violation",
      ...held,
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, "A", 1013),
    ],
    [
      "a refusal that passed it to another client",
      "violation",
      ...held,
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, "B", 1000),
    ],
    [
      "a refusal beside another client's release",
      "empty",
      "A acquire 0-1 ok",
      "B release 10-12 no not-owner",
      "C acquire 11- info",
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, null, null),
    ],
  ]);
});

describe("S3, read in the same step as the call", () => {
  const held = ["A acquire 0-1 ok valid=900", "B extend 12-12 no not-owner", "C acquire 11- info"] as const;
  judged((records) => ownersOnly(historyOf(records), { epsMs: 0, isOneStep: true }), "mutex", [
    [
      "a refusal without a trace, beside others",
      "ok",
      ...held,
      seen(1, "before", 12, "A", 99),
      seen(1, "after", 12, "A", 99),
    ],
    [
      "a refusal that moved an expiry, beside others",
      "violation",
      ...held,
      seen(1, "before", 12, "A", 99),
      seen(1, "after", 12, "A", 98),
    ],
  ]);
});

describe("S4, loss is loud", () => {
  const lease = "A acquire 0-1 ok valid=100 lease=100";
  judged((records) => loudLoss(historyOf(records), { marginMs: 10, epsMs: 0 }), "mutex", [
    ["held until it is over", "ok", lease, sample(0, 50, true), sample(0, 100, false)],
    ["held at its end", "violation", lease, sample(0, 100, true)],
    [
      "held by an extend that had not returned",
      "violation",
      lease,
      "A extend 90-130 ok valid=190",
      sample(0, 120, true),
    ],
    ["held by an extend that had returned", "ok", lease, "A extend 90-95 ok valid=190", sample(0, 120, true)],
    ["held again after it was over", "violation", lease, sample(0, 50, false), sample(0, 60, true)],
    ["reported in the first turn past the mark", "ok", lease, turn(80, 85), turn(95, 97), lost(0, 96)],
    ["reported a turn too late", "violation", lease, turn(80, 85), turn(95, 97), turn(98, 99), lost(0, 99)],
    ["never told", "violation", lease, turn(95, 97)],
    ["released before the mark", "empty", lease, "A release 50-51 ok", turn(95, 97)],
    ["a process that never ran again", "empty", lease, turn(80, 85)],
    ["a process that was interrupted", "empty", lease, interrupted(95, 97)],
    [
      "held after a pause shorter than it, and a turn that was interrupted",
      "ok",
      lease,
      turn(2, 3),
      interrupted(90, 91),
      turn(170, 180),
      "A extend 90-175 ok valid=190",
      sample(0, 180, true, { validUntilMs: 190 }),
    ],
    ["over after a pause longer than it", "ok", lease, turn(2, 3), turn(200, 210), lost(0, 201), sample(0, 200, false)],
    [
      "held after a pause longer than it",
      "violation",
      lease,
      turn(2, 3),
      turn(200, 210),
      lost(0, 201),
      sample(0, 200, true, { validUntilMs: 300 }),
    ],
    [
      "held after a turn longer than it",
      "violation",
      lease,
      turn(2, 200),
      lost(0, 200),
      sample(0, 200, true, { validUntilMs: 300 }),
    ],
  ]);
});
