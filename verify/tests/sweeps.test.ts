import { describe, expect, it } from "vitest";

import { historyOf } from "../src/history/index.js";
import type { Effect, HistoryRecord, Kind, Operation } from "../src/history/records.js";
import {
  crashedHolder,
  exactTokens,
  fairOrder,
  guardedTokens,
  leaseExclusion,
  loudLoss,
  noStarvation,
  ownersOnly,
  permitsWithinLimit,
  risingTokens,
  type SweepResult,
  settledWaits,
  steadyTokens,
  uniqueTokens,
  untornEffects,
  writersAlone,
} from "../src/sweeps/index.js";
import { operations } from "./histories.js";

type Sweep = (records: readonly HistoryRecord[]) => SweepResult;
type Case = readonly [
  property: string,
  verdict: SweepResult["verdict"],
  ...records: readonly (string | HistoryRecord)[],
];

/** Runs each case on the sweep: lines are operations, the rest is what else was seen. */
function judged(sweep: Sweep, kind: Kind, cases: readonly Case[]): void {
  it.each(cases.map(([property, verdict, ...records]) => ({ property, verdict, records })))(
    "$property: $verdict",
    ({ verdict, records }) => {
      const result = sweep(recordsOf(records, kind));
      expect(result.verdict, result.violations.map(({ message }) => message).join("\n")).toBe(verdict);
      for (const { records: shown } of result.violations) expect(shown).not.toEqual([]);
    },
  );
}

function recordsOf(records: readonly (string | HistoryRecord)[], kind: Kind): HistoryRecord[] {
  const lines = records.filter((record) => typeof record === "string");
  return [...operations(lines, kind), ...records.filter((record) => typeof record !== "string")];
}

const lockName = "orders";
const sample = (
  leaseId: number,
  atMs: number,
  isHeld: boolean,
  more: { validUntilMs?: number; token?: number } = {},
): HistoryRecord => ({
  type: "held",
  atMs,
  process: "A",
  lockName,
  leaseId,
  isHeld,
  token: more.token ?? null,
  validUntilMs: more.validUntilMs ?? null,
});
const turn = (beganMs: number, endedMs: number): HistoryRecord => ({ type: "turn", process: "A", beganMs, endedMs });
const lost = (leaseId: number, atMs: number): HistoryRecord => ({
  type: "lost",
  atMs,
  process: "A",
  lockName,
  leaseId,
});
const killed = (target: string, beganMs: number): HistoryRecord => ({
  type: "fault",
  id: "J03",
  beganMs,
  endedMs: Infinity,
  target,
  proof: "exit signal",
});
const frozen = (beganMs: number, endedMs: number): HistoryRecord => ({
  type: "fault",
  id: "J30",
  beganMs,
  endedMs,
  target: "server",
  proof: "TIME",
});
const queued = (operationId: number, atMs: number): HistoryRecord => ({
  type: "enqueued",
  atMs,
  lockName,
  operationId,
});
const scan = (atMs: number, owners: readonly string[], isReachable = true): HistoryRecord => ({
  type: "key-scan",
  atMs,
  lockName,
  owners,
  isReachable,
});
const seen = (
  operationId: number,
  when: "before" | "after",
  atMs: number,
  owner: string | null,
  expiresAtMs: number | null,
): HistoryRecord => ({ type: "observation", operationId, when, atMs, lockName, owner, expiresAtMs });
const effect = (
  sequence: number,
  leaseId: number,
  token: number | null,
  more: Partial<Effect> = {},
): HistoryRecord => ({
  type: "effect",
  atMs: sequence,
  resource: "stock",
  sequence,
  process: `P${leaseId}`,
  lockName,
  leaseId,
  token,
  isAccepted: true,
  isAcknowledged: true,
  value: `v${sequence}`,
  ...more,
});

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
      "granted when the first says that it is held",
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
    ["of somebody who never had it", "violation", "A acquire 0-1 ok valid=900", "B extend 2-3 ok"],
    ["of somebody who may have it", "ok", "A acquire 0-1 info", "A release 2-3 ok"],
    ["of somebody who released it", "violation", "A acquire 0-1 ok valid=900", "A release 2-3 ok", "A release 4-5 ok"],
    [
      "while another holds it",
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
      "a refusal that prolonged it",
      "violation",
      ...held,
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, "A", 1013),
    ],
    [
      "a refusal that gave it to another",
      "violation",
      ...held,
      seen(1, "before", 9, "A", 1000),
      seen(1, "after", 13, "B", 1000),
    ],
    [
      "a refusal beside somebody's release",
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
    ["told in the first turn past the mark", "ok", lease, turn(80, 85), turn(95, 97), lost(0, 96)],
    ["told a turn too late", "violation", lease, turn(80, 85), turn(95, 97), turn(98, 99), lost(0, 99)],
    ["never told", "violation", lease, turn(95, 97)],
    ["released before the mark", "empty", lease, "A release 50-51 ok", turn(95, 97)],
    ["a process that never ran again", "empty", lease, turn(80, 85)],
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

describe("F1, a token once", () => {
  judged((records) => uniqueTokens(historyOf(records)), "mutex", [
    ["two tokens", "ok", "A acquire 0-1 ok token=5", "B acquire 2-3 ok token=6"],
    ["one token twice", "violation", "A acquire 0-1 ok token=5", "B acquire 2-3 ok token=5"],
    ["no token known", "empty", "A acquire 0-1 info token=5"],
  ]);
  judged((records) => uniqueTokens(historyOf(records)), "reentrant-mutex", [
    [
      "one token for the holds of one owner",
      "ok",
      "A acquire 0-1 ok token=5 valid=900",
      "A acquire 2-3 ok token=5 valid=900",
    ],
    [
      "one token for a further hold that is heard of when the lease is over",
      "ok",
      "A acquire 0-1 ok token=5 valid=9",
      "A acquire 8-10 ok token=5",
    ],
    [
      "one token for two holds apart",
      "violation",
      "A acquire 0-1 ok token=5 valid=9",
      "A release 2-3 ok",
      "A acquire 4-5 ok token=5 valid=19",
    ],
  ]);
});

describe("F2, tokens rise", () => {
  judged((records) => risingTokens(historyOf(records)), "mutex", [
    ["with the order of grants", "ok", "A acquire 0-1 ok token=5", "B acquire 2-3 ok token=6"],
    ["against the order of grants", "violation", "A acquire 0-1 ok token=6", "B acquire 2-3 ok token=5"],
    [
      "against the order of returns of what overlaps",
      "ok",
      "A acquire 0-5 ok token=6",
      "B acquire 5-9 ok token=5",
      "C acquire 10-11 ok token=7",
    ],
    [
      "below one that returned long ago",
      "violation",
      "A acquire 0-1 ok token=9",
      "B acquire 0-5 ok token=5",
      "C acquire 10-11 ok token=7",
    ],
    ["of unknown outcome", "empty", "A acquire 0-1 info token=9", "B acquire 2-3 ok token=5"],
    ["with an upgrade", "violation", "A acquire 0-1 ok token=5", "A upgrade 2-3 ok token=5"],
  ]);
});

describe("F3, a lease keeps its token", () => {
  const lease = "A acquire 0-1 ok token=5 valid=900";
  judged((records) => steadyTokens(historyOf(records)), "reentrant-mutex", [
    ["through extend and samples", "ok", lease, "A extend 2-3 ok token=5", sample(0, 4, true, { token: 5 })],
    ["changed by extend", "violation", lease, "A extend 2-3 ok token=6"],
    ["changed when asked", "violation", lease, sample(0, 4, false, { token: 6 })],
    ["through another hold", "ok", lease, "A acquire 2-3 ok token=5 valid=900"],
    ["changed by another hold", "violation", lease, "A acquire 2-3 ok token=6 valid=900"],
    ["changed by an upgrade, and kept then", "ok", lease, "A upgrade 2-3 ok token=7", "A extend 4-5 ok token=7"],
    ["changed back after an upgrade", "violation", lease, "A upgrade 2-3 ok token=7", "A extend 4-5 ok token=5"],
    [
      "changed or not by an upgrade that nobody answered",
      "empty",
      lease,
      "A upgrade 2-3 info",
      "A extend 4-5 ok token=7",
    ],
  ]);
});

describe("F4, tokens are exact", () => {
  judged((records) => exactTokens(historyOf(records)), "mutex", [
    [
      "up to the last safe one",
      "ok",
      "A acquire 0-1 ok token=9007199254740991",
      "B acquire 2-3 ok token=1800000000000000",
    ],
    ["past the last safe one", "violation", "A acquire 0-1 ok token=9007199254740992"],
    ["a fraction", "violation", "A acquire 0-1 ok token=1.5"],
    ["zero, in a sample", "violation", sample(0, 4, true, { token: 0 })],
  ]);
});

describe("F5, what is guarded takes no lower token", () => {
  judged((records) => guardedTokens(historyOf(records)), "mutex", [
    ["in its own order, whatever the order of the record", "ok", effect(2, 1, 6), effect(1, 0, 5), effect(3, 1, 6)],
    ["a lower one refused", "ok", effect(1, 1, 6), effect(2, 0, 5, { isAccepted: false })],
    ["a lower one accepted", "violation", effect(1, 1, 6), effect(2, 0, 5)],
    ["only refusals", "empty", effect(1, 1, 6, { isAccepted: false })],
  ]);
});

describe("E1, effects are not torn", () => {
  const final = (...values: string[]): HistoryRecord => ({ type: "final-state", resource: "stock", values });
  judged((records) => untornEffects(historyOf(records)), "mutex", [
    ["one holder after the other", "ok", effect(1, 0, 5), effect(2, 0, 5), effect(3, 1, 6), final("v1", "v2", "v3")],
    ["one holder amid another", "violation", effect(1, 0, null), effect(2, 1, null), effect(3, 0, null)],
    ["a refused one amid another", "ok", effect(1, 0, 5), effect(2, 1, 4, { isAccepted: false }), effect(3, 0, 5)],
    ["an acknowledged one is lost", "violation", effect(1, 0, 5), final()],
    ["one that nobody heard of is lost", "ok", effect(1, 0, 5, { isAcknowledged: false }), final()],
  ]);
});

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
      "beyond a lowered limit that others were granted under",
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
    ["with a limit of unknown outcome", "ok", "X resize 2- info permits=4", "A acquire 3-4 ok valid=90 permits=4"],
  ]);

  it("the most at once is reported", () => {
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
      "in order, though the word of it came later",
      "ok",
      "A acquire 0-20 ok token=5",
      "B acquire 5-10 ok token=6",
      queued(0, 2),
      queued(1, 6),
    ],
    ["against the order, without tokens", "violation", "A acquire 0-20 ok", "B acquire 5-10 ok", queued(0, 2)],
    ["past somebody who waits to this day", "violation", "A acquire 0- ok", "B acquire 5-10 ok", queued(0, 2)],
    [
      "before the place was acknowledged",
      "empty",
      "A acquire 0-20 ok token=6",
      "B acquire 5-10 ok token=5",
      queued(0, 7),
    ],
  ]);

  it("whoever gave up, died or was taken for dead is left out, and listed", () => {
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
      "C: it was taken for dead",
    ]);
  });
});

describe("L1, after a crash of the holder", () => {
  const options = { pollMs: 50, epsMs: 10, forbidding: new Set(["J30"]) };
  const lease = "A acquire 0-1 ok valid=90 lease=100";
  judged((records) => crashedHolder(historyOf(records), options), "mutex", [
    ["granted in time", "ok", lease, "B acquire 5-160 ok", killed("A", 10)],
    ["granted late", "violation", lease, "B acquire 5-170 ok", killed("A", 10)],
    [
      "granted late to a second waiter",
      "violation",
      lease,
      "B acquire 5-190 ok",
      "C acquire 5-180 ok",
      killed("A", 10),
    ],
    [
      "granted late, after the first waiter gave up",
      "violation",
      lease,
      "B acquire 5-170 no gave-up",
      "C acquire 165-180 ok",
      killed("A", 10),
    ],
    ["granted soon to somebody who came late", "ok", lease, "B acquire 500-520 ok", killed("A", 10)],
    [
      "not yet granted when the record ends",
      "empty",
      lease,
      "B acquire 5- info",
      "C acquire 100-140 no gave-up",
      killed("A", 10),
    ],
    ["never granted", "violation", lease, "B acquire 5- info", "C acquire 100-300 no gave-up", killed("A", 10)],
    [
      "granted after the last renewal",
      "ok",
      lease,
      "A extend 50-51 ok valid=140 lease=100",
      "B acquire 5-210 ok",
      killed("A", 60),
    ],
    ["granted after the server's clock went on", "ok", lease, "B acquire 5-360 ok", killed("A", 10), frozen(20, 300)],
    ["killed without holding it", "empty", lease, "A release 5-6 ok", "B acquire 5-500 ok", killed("A", 10)],
  ]);
});

describe("L4, waits settle", () => {
  judged((records) => settledWaits(historyOf(records), { epsMs: 10, rho: 0.01 }), "mutex", [
    ["by the deadline", "ok", "A acquire 0-105 no gave-up wait=100"],
    ["after the deadline", "violation", "A acquire 0-115 no gave-up wait=100"],
    ["before the deadline, for want of patience", "violation", "A acquire 0-50 no gave-up wait=100"],
    ["before the deadline, granted", "ok", "A acquire 0-50 ok wait=100"],
    ["granted after the deadline", "violation", "A acquire 0-150 ok wait=100"],
    ["by the abort", "ok", "A acquire 0-55 no gave-up wait=100 aborted=50"],
    ["after the abort", "violation", "A acquire 0-95 no gave-up wait=100 aborted=50"],
    ["aborted before it was called", "ok", "A acquire 50-51 no not-sent wait=100 aborted=0"],
    ["never", "violation", "A acquire 0- info wait=100", "B acquire 300-301 ok"],
    ["never, in a process that was killed", "empty", "A acquire 0- info wait=100", killed("A", 50), scan(300, [])],
    ["with a wait without end", "empty", "A acquire 0-1000 ok"],
    ["leaving nothing", "ok", "A acquire 0-100 no gave-up wait=100", scan(120, ["B"])],
    ["leaving a key", "violation", "A acquire 0-100 no gave-up wait=100", scan(120, ["A"])],
    ["leaving a key while the server is away", "ok", "A acquire 0-100 no gave-up wait=100", scan(120, ["A"], false)],
    ["leaving a key past its lease", "violation", "A acquire 0-100 info wait=100", scan(1200, ["A"], false)],
  ]);
});

describe("L6, nobody starves", () => {
  const options = { waiterMs: 50, epsMs: 10, mostPassed: 2, forbidding: new Set<string>() };
  const served = (...froms: number[]): string[] => froms.map((from) => `B acquire ${from}-${from + 5} ok`);
  const behindDead = ["A acquire 0-1 ok", "B acquire 2- info", "C acquire 5-9 no busy"] as const;
  judged((records) => noStarvation(historyOf(records), options), "mutex", [
    ["passed by few", "ok", "A acquire 0-100 ok", ...served(10, 20), queued(0, 1)],
    ["passed by many", "violation", "A acquire 0-100 ok", ...served(10, 20, 30), queued(0, 1)],
    [
      "served in its turn, and asleep until that was over",
      "ok",
      "A acquire 0-100 ok token=5",
      ...[10, 20, 30].map((from) => `B acquire ${from}-${from + 5} ok token=${from}`),
      queued(0, 1),
    ],
    [
      "passed by many, and told so by their tokens",
      "violation",
      "A acquire 0-100 ok token=40",
      ...[10, 20, 30].map((from) => `B acquire ${from}-${from + 5} ok token=${from}`),
      queued(0, 1),
    ],
    ["passed by many who asked before", "ok", "A acquire 0-100 ok", ...served(10, 20, 30), queued(0, 90)],
    [
      "behind a dead waiter, in time",
      "ok",
      ...behindDead,
      "A release 20-21 ok of=0",
      "C acquire 6-75 ok",
      killed("B", 10),
    ],
    [
      "behind a dead waiter, too late",
      "violation",
      ...behindDead,
      "A release 20-21 ok of=0",
      "C acquire 6-95 ok",
      killed("B", 10),
    ],
    ["behind a dead waiter, with nobody else", "empty", ...behindDead, "A release 20-21 ok of=0", killed("B", 10)],
  ]);
});
