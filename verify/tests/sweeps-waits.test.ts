import { describe } from "vitest";

import { historyOf } from "../src/history/index.js";
import { crashedHolder, noStarvation, settledWaits } from "../src/sweeps/index.js";
import { frozen, judged, killed, queued, scan } from "./sweep-cases.js";

describe("L1, after a crash of the holder", () => {
  const options = { pollMs: 50, epsMs: 10, forbidding: new Set(["J30"]) };
  const lease = "A acquire 0-1 ok valid=90 lease=100";
  judged((records) => crashedHolder(historyOf(records), options), "mutex", [
    ["granted in time", "ok", lease, "B acquire 5-160 ok", killed("A", 10)],
    ["granted late", "violation", lease, "B acquire 5-170 ok", killed("A", 10)],
    [
      "granted in time to a waiter for several locks, which renews it while it waits for the others",
      "ok",
      lease,
      "B extend 150-155 ok lease=100",
      "B acquire 5-400 ok",
      killed("A", 10),
    ],
    [
      "granted late to a waiter for several locks",
      "violation",
      lease,
      "B extend 165-170 ok lease=100",
      "B acquire 5-400 ok",
      killed("A", 10),
    ],
    [
      "granted late, after a former holder's renewal from before the grant",
      "violation",
      "A acquire 20-21 ok valid=110 lease=100",
      "C extend 10-25 ok lease=100",
      "B acquire 22-300 ok",
      killed("A", 24),
    ],
    [
      "granted to no one, although others ask for it",
      "violation",
      lease,
      "B extend 150-155 no not-held",
      "B acquire 5-400 ok",
      killed("A", 10),
    ],
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
    ["granted soon to a late caller", "ok", lease, "B acquire 500-520 ok", killed("A", 10)],
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
      "never granted to a waiter that was dead by then, whatever struck it afterwards",
      "empty",
      lease,
      "B acquire 5- info",
      killed("A", 10),
      killed("B", 50),
      killed("B", 250),
      scan(400, []),
    ],
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

describe("L1, for locks with several holders", () => {
  const options = { pollMs: 50, epsMs: 10, forbidding: new Set(["J30"]) };
  const dead = "A acquire 0-1 ok valid=90 lease=100 permits=2";
  const late = "B acquire 5-170 ok permits=3";
  judged((records) => crashedHolder(historyOf(records), { ...options, sharedRho: 0 }), "semaphore", [
    ["granted in time", "ok", dead, "B acquire 5-160 ok permits=3", killed("A", 10)],
    ["granted late", "violation", dead, late, killed("A", 10)],
    [
      "granted after another holder has released",
      "ok",
      dead,
      "C acquire 0-1 ok",
      "C release 150-151 ok",
      late,
      killed("A", 10),
    ],
    ["granted after another lease had ended", "ok", dead, "C acquire 50-51 ok lease=100", late, killed("A", 10)],
    [
      "granted after a caller that gave up, and may have held it",
      "ok",
      dead,
      "C acquire 5-60 no gave-up lease=100",
      late,
      killed("A", 10),
    ],
    [
      "granted late, after a caller that was refused",
      "violation",
      dead,
      "C acquire 50-51 no busy",
      late,
      killed("A", 10),
    ],
    [
      "granted late, after another lease that ended in time",
      "violation",
      dead,
      "C acquire 0-1 ok lease=50",
      late,
      killed("A", 10),
    ],
  ]);
  judged((records) => crashedHolder(historyOf(records), options), "semaphore", [
    ["not judged unless requested", "empty", dead, late, killed("A", 10)],
  ]);
});

describe("L4, waits settle", () => {
  judged((records) => settledWaits(historyOf(records), { epsMs: 10, rho: 0.01 }), "mutex", [
    ["by the deadline", "ok", "A acquire 0-105 no gave-up wait=100"],
    ["after the deadline", "violation", "A acquire 0-115 no gave-up wait=100"],
    ["before the deadline, too early", "violation", "A acquire 0-50 no gave-up wait=100"],
    ["before the deadline, granted", "ok", "A acquire 0-50 ok wait=100"],
    ["granted after the deadline", "violation", "A acquire 0-150 ok wait=100"],
    ["by the abort", "ok", "A acquire 0-55 no gave-up wait=100 aborted=50"],
    ["after the abort", "violation", "A acquire 0-95 no gave-up wait=100 aborted=50"],
    ["aborted before it was called", "ok", "A acquire 50-51 no not-sent wait=100 aborted=0"],
    ["never", "violation", "A acquire 0- info wait=100", "B acquire 300-301 ok"],
    ["never, in a process that was killed", "empty", "A acquire 0- info wait=100", killed("A", 50), scan(300, [])],
    ["with a wait without a limit", "empty", "A acquire 0-1000 ok"],
    ["leaving nothing", "ok", "A acquire 0-100 no gave-up wait=100", scan(120, ["B"])],
    ["leaving a key", "violation", "A acquire 0-100 no gave-up wait=100", scan(120, ["A"])],
    ["leaving a key while the server is away", "ok", "A acquire 0-100 no gave-up wait=100", scan(120, ["A"], false)],
    ["leaving a key past its lease", "violation", "A acquire 0-100 info wait=100", scan(1200, ["A"], false)],
  ]);
});

describe("L6, no waiter starves", () => {
  const options = { waiterMs: 50, epsMs: 10, mostPassed: 2, forbidding: new Set<string>() };
  const served = (...froms: number[]): string[] => froms.map((from) => `B acquire ${from}-${from + 5} ok`);
  const behindDead = ["A acquire 0-1 ok", "B acquire 2- info", "C acquire 5-9 no busy"] as const;
  judged((records) => noStarvation(historyOf(records), options), "mutex", [
    ["passed by few", "ok", "A acquire 0-100 ok", ...served(10, 20), queued(0, 1)],
    ["passed by many", "violation", "A acquire 0-100 ok", ...served(10, 20, 30), queued(0, 1)],
    [
      "served at its turn, but frozen until that lease had ended",
      "ok",
      "A acquire 0-100 ok token=5",
      ...[10, 20, 30].map((from) => `B acquire ${from}-${from + 5} ok token=${from}`),
      queued(0, 1),
    ],
    [
      "passed by many, as their tokens show",
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
    ["behind a dead waiter, without others", "empty", ...behindDead, "A release 20-21 ok of=0", killed("B", 10)],
    ["passed by many, and refused", "violation", "A acquire 0-100 no gave-up", ...served(10, 20, 30), queued(0, 1)],
  ]);
  judged((records) => noStarvation(historyOf(records), { ...options, leftMs: () => 50 }), "mutex", [
    [
      "passed by many after it left the queue, while it was frozen",
      "ok",
      "A acquire 0-100 no gave-up",
      ...served(10, 20, 60, 70, 80),
      queued(0, 1),
    ],
    [
      "passed by many before it left the queue",
      "violation",
      "A acquire 0-100 no gave-up",
      ...served(10, 20, 30),
      queued(0, 1),
    ],
    ["passed by many, and granted", "violation", "A acquire 0-100 ok", ...served(60, 70, 80), queued(0, 1)],
  ]);
});
