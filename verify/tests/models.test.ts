import { describe, expect, it } from "vitest";

import { check, type Model } from "../src/checker/index.js";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord, Kind, Operation } from "../src/history/records.js";
import {
  EXPIRY,
  fenced,
  fifo,
  fifoOperations,
  latch,
  mutex,
  ownerAware,
  permits,
  readWrite,
  reentrant,
  reentrantFenced,
  timed,
} from "../src/models/index.js";
import { operations } from "./histories.js";

type Verdict = "ok" | "violation";
type Case = readonly [property: string, verdict: Verdict, ...lines: readonly string[]];

/** Runs each case on the model. Leases last 1000 ms where a line says nothing, and rho is 1 %. */
function judged<State>(model: Model<State, Operation>, kind: Kind, cases: readonly Case[]): void {
  it.each(cases.map(([property, verdict, ...lines]) => ({ property, verdict, lines })))(
    "$property: $verdict",
    ({ verdict, lines }) => {
      expect(check(model, timed(operations(lines, kind))).verdict).toBe(verdict);
    },
  );
}

const TAKEN = ["A acquire 0-1 ok", "B acquire 2-3 ok"] as const;

describe("mutex", () => {
  judged(mutex(), "mutex", [
    ["one after the other", "ok", "A acquire 0-1 ok", "A release 2-3 ok", "B acquire 4-5 ok"],
    ["two at once", "violation", ...TAKEN],
    ["a release by whoever it be", "ok", "A acquire 0-1 ok", "B release 2-3 ok", "C acquire 4-5 ok"],
    ["a release of what is free", "violation", "A release 0-1 ok"],
    ["busy while it is free", "violation", "A acquire 0-1 no busy"],
  ]);
});

describe("owner-aware", () => {
  judged(ownerAware(), "mutex", [
    ["a release that overlaps the next acquire", "ok", "A acquire 0-1 ok", "A release 2-9 ok", "B acquire 3-4 ok"],
    ["two at once", "violation", ...TAKEN],
    ["an owner that acquires twice", "violation", "A acquire 0-1 ok", "A acquire 2-3 ok"],
    ["a release by another", "violation", "A acquire 0-1 ok", "B release 2-3 ok"],
    ["a refused release by another", "ok", "A acquire 0-1 ok", "B release 2-3 no not-owner", "A release 4-5 ok"],
    ["a refused release by its owner", "violation", "A acquire 0-1 ok", "A release 2-3 no not-owner"],
    ["a second release", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A release 4-5 ok"],
    ["an extend by another", "violation", "A acquire 0-1 ok", "B extend 2-3 ok"],
    ["an extend after release", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A extend 4-5 ok"],
    ["a refused extend after release", "ok", "A acquire 0-1 ok", "A release 2-3 ok", "A extend 4-5 no not-owner"],
    ["what was not sent", "ok", "A acquire 0-1 no not-sent", "A release 2-3 no not-sent"],
    [
      "a forced release",
      "ok",
      "A acquire 0-1 ok",
      "A force-release 2-3 ok",
      "B acquire 4-5 ok",
      "A release 6-7 no not-owner",
    ],
  ]);
});

describe("the end of a lease", () => {
  judged(ownerAware(), "mutex", [
    ["the next acquire at the earliest end", "ok", "A acquire 0-1 ok", "B acquire 980-990 ok"],
    ["the next acquire before the earliest end", "violation", "A acquire 0-1 ok", "B acquire 980-989 ok"],
    ["busy until the latest end", "ok", "A acquire 0-1 ok", "B acquire 1011-1012 no busy"],
    ["busy after the latest end: a dead lock lingers", "violation", "A acquire 0-1 ok", "B acquire 1012-1013 no busy"],
    ["a release at the latest end", "ok", "A acquire 0-1 ok", "A release 1011-1012 ok"],
    ["a release after the latest end", "violation", "A acquire 0-1 ok", "A release 1012-1013 ok"],
    ["a refused release once it may be over", "ok", "A acquire 0-1 ok", "A release 980-990 no not-owner"],
    ["a refused release before it may be over", "violation", "A acquire 0-1 ok", "A release 980-989 no not-owner"],
    ["an extend that begins it anew", "violation", "A acquire 0-1 ok", "A extend 500-501 ok", "B acquire 1400-1450 ok"],
    ["an acquire after the extended end", "ok", "A acquire 0-1 ok", "A extend 500-501 ok", "B acquire 1480-1490 ok"],
    ["an extend after the latest end", "violation", "A acquire 0-1 ok", "A extend 1012-1013 ok"],
    ["the owner's next acquire", "ok", "A acquire 0-1 ok", "A acquire 1100-1101 ok"],
    [
      "busy after a release refused as over",
      "violation",
      "A acquire 0-1 ok",
      "A release 995-996 no not-owner",
      "B acquire 1000-1001 no busy",
    ],
  ]);

  const unbounded = [{ beganMs: 100, endedMs: 200 }];
  describe("in a window in which leases may vanish", () => {
    const expiry = { ...EXPIRY, unbounded: unbounded.map((window) => ({ ...window, expiry: "early" as const })) };
    judged(ownerAware(expiry), "mutex", [
      ["an acquire within", "ok", "A acquire 0-1 ok", "B acquire 150-151 ok"],
      ["an acquire after it", "ok", "A acquire 0-1 ok", "B acquire 300-301 ok"],
      ["an acquire before it", "violation", "A acquire 0-1 ok", "B acquire 98-99 ok"],
      ["an acquire of what was granted after it", "violation", "A acquire 201-202 ok", "B acquire 300-301 ok"],
      ["a release by another", "violation", "A acquire 0-1 ok", "B release 150-151 ok"],
    ]);
  });

  describe("in a window in which leases may stay", () => {
    const expiry = { ...EXPIRY, unbounded: unbounded.map((window) => ({ ...window, expiry: "late" as const })) };
    judged(ownerAware(expiry), "mutex", [
      ["busy long after", "ok", "A acquire 0-1 ok", "B acquire 9000-9001 no busy"],
      ["busy with what was granted after it", "violation", "A acquire 201-202 ok", "B acquire 9000-9001 no busy"],
      ["two at once", "violation", ...TAKEN],
    ]);
  });
});

describe("an unknown outcome", () => {
  judged(ownerAware(), "mutex", [
    ["an acquire that happened", "ok", "A acquire 0-9 info", "B acquire 10-11 no busy"],
    ["an acquire that did not", "ok", "A acquire 0-9 info", "B acquire 10-11 ok"],
    [
      "an acquire that happens later than it returned",
      "ok",
      "A acquire 0-9 info",
      "B acquire 10-11 ok",
      "B release 12-13 ok",
      "C acquire 14-15 no busy",
    ],
    [
      "an acquire that cannot explain two",
      "violation",
      "A acquire 0-9 info",
      "B acquire 10-11 ok",
      "C acquire 12-13 ok",
    ],
    [
      "an acquire seen to be delivered, long after its lease",
      "violation",
      "A acquire 0-9 info delivered=5",
      "B acquire 1020-1021 no busy",
    ],
    [
      "an acquire seen to be delivered, within its lease",
      "ok",
      "A acquire 0-9 info delivered=5",
      "B acquire 1010-1011 no busy",
    ],
    ["a release that happened", "ok", "A acquire 0-1 ok", "A release 2- info", "B acquire 3-4 ok"],
    ["a release that did not", "ok", "A acquire 0-1 ok", "A release 2- info", "B acquire 3-4 no busy"],
    [
      "a release that happens once",
      "violation",
      "A acquire 0-1 ok",
      "A release 2- info",
      "B acquire 3-4 ok",
      "C acquire 5-6 ok",
    ],
    [
      "a release of another that cannot free it",
      "violation",
      "A acquire 0-1 ok",
      "B release 2- info",
      "C acquire 3-4 ok",
    ],
    ["an extend that may have happened", "ok", "A acquire 0-1 ok", "A extend 900- info", "B acquire 1500-1501 no busy"],
    ["a grant that crossed a leaving", "ok", "A acquire 0-9 no gave-up", "B acquire 3-4 no busy", "C acquire 10-11 ok"],
    [
      "a grant that crossed a leaving, and stays past its lease",
      "violation",
      "A acquire 0-9 no gave-up",
      "B acquire 1020-1021 no busy",
    ],
  ]);
});

describe("reentrant", () => {
  judged(reentrant(2), "reentrant-mutex", [
    [
      "two holds and two releases",
      "ok",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok",
      "A release 4-5 ok",
      "A release 6-7 ok",
      "B acquire 8-9 ok",
    ],
    [
      "another after one of two releases",
      "violation",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok",
      "A release 4-5 ok",
      "B acquire 6-7 ok",
    ],
    ["a hold more than allowed", "violation", "A acquire 0-1 ok", "A acquire 2-3 ok", "A acquire 4-5 ok"],
    ["a hold more than allowed is refused", "ok", "A acquire 0-1 ok", "A acquire 2-3 ok", "A acquire 4-5 no busy"],
    ["a hold that is allowed is refused", "violation", "A acquire 0-1 ok", "A acquire 2-3 no busy"],
    ["a release more than holds", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A release 4-5 ok"],
    ["the end of the lease ends all holds", "ok", "A acquire 0-1 ok", "A acquire 2-3 ok", "B acquire 1100-1101 ok"],
  ]);
});

describe("fenced", () => {
  judged(fenced(), "mutex", [
    ["rising tokens", "ok", "A acquire 0-1 ok token=5", "A release 2-3 ok", "B acquire 4-5 ok token=6"],
    ["the same token again", "violation", "A acquire 0-1 ok token=5", "A release 2-3 ok", "B acquire 4-5 ok token=5"],
    ["a lower token", "violation", "A acquire 0-1 ok token=5", "A release 2-3 ok", "B acquire 4-5 ok token=4"],
    [
      "an unknown token between",
      "ok",
      "A acquire 0-1 ok token=5",
      "A release 2-3 ok",
      "B acquire 4-5 ok",
      "B release 6-7 ok",
      "C acquire 8-9 ok token=6",
    ],
    [
      "tokens against the order of returns, while they overlap",
      "ok",
      "A acquire 0-9 ok token=6",
      "B acquire 0-5 ok token=5",
      "B release 6-7 ok",
    ],
    ["an extend that keeps it", "ok", "A acquire 0-1 ok token=5", "A extend 2-3 ok token=5"],
    ["an extend that changes it", "violation", "A acquire 0-1 ok token=5", "A extend 2-3 ok token=6"],
    ["a lower token after expiry", "violation", "A acquire 0-1 ok token=5", "B acquire 2000-2001 ok token=4"],
  ]);
});

describe("reentrant-fenced", () => {
  judged(reentrantFenced(3), "reentrant-mutex", [
    ["one token for all holds", "ok", "A acquire 0-1 ok token=5", "A acquire 2-3 ok token=5", "A acquire 4-5 ok"],
    ["a new token on re-entry", "violation", "A acquire 0-1 ok token=5", "A acquire 2-3 ok token=6"],
    [
      "a token that comes to be known",
      "ok",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok token=5",
      "A acquire 4-5 ok token=5",
    ],
    [
      "a token that came to be known and changes",
      "violation",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok token=5",
      "A acquire 4-5 ok token=6",
    ],
    ["the next owner's is higher", "ok", "A acquire 0-1 ok token=5", "A release 2-3 ok", "B acquire 4-5 ok token=6"],
    [
      "the next owner's is the same",
      "violation",
      "A acquire 0-1 ok token=5",
      "A release 2-3 ok",
      "B acquire 4-5 ok token=5",
    ],
  ]);
});

describe("permits", () => {
  judged(permits({ limit: 3 }), "semaphore", [
    ["as many as there are", "ok", "A acquire 0-1 ok permits=2", "B acquire 2-3 ok"],
    ["more than there are", "violation", "A acquire 0-1 ok permits=2", "B acquire 2-3 ok permits=2"],
    [
      "again after a release",
      "ok",
      "A acquire 0-1 ok permits=3",
      "A release 2-3 ok permits=3",
      "B acquire 4-5 ok permits=3",
    ],
    [
      "again after part of a release",
      "violation",
      "A acquire 0-1 ok permits=3",
      "A release 2-3 ok permits=1",
      "B acquire 4-5 ok permits=2",
    ],
    ["more back than were had", "violation", "A acquire 0-1 ok permits=2", "A release 2-3 ok permits=3"],
    ["a release without holding", "violation", "A acquire 0-1 ok", "B release 2-3 ok"],
    ["a refused release without holding", "ok", "A acquire 0-1 ok", "B release 2-3 no not-owner"],
    ["busy while all are free", "violation", "A acquire 0-1 no busy"],
    ["busy behind a larger request", "ok", "A acquire 0-1 ok", "B acquire 2-3 no busy"],
    [
      "one share that may be over makes room",
      "ok",
      "A acquire 0-1 ok permits=2",
      "B acquire 500-501 ok",
      "C acquire 1000-1001 ok permits=2",
    ],
    [
      "a share makes room and is then released",
      "violation",
      "A acquire 0-1 ok permits=2",
      "B acquire 500-501 ok",
      "C acquire 1000-1001 ok permits=2",
      "A release 1002-1003 ok permits=2",
    ],
    [
      "either of two shares makes room, and the other is released",
      "ok",
      "A acquire 0-1 ok permits=2",
      "B acquire 0-1 ok permits=1",
      "C acquire 1000-1001 ok permits=1",
      "A release 1002-1003 ok permits=2",
    ],
    ["a smaller limit", "violation", "X resize 0-1 ok permits=1", "A acquire 2-3 ok permits=2"],
    ["a larger limit", "ok", "X resize 0-1 ok permits=4", "A acquire 2-3 ok permits=4"],
  ]);

  describe("that may be overtaken", () => {
    judged(permits({ limit: 3, overtakes: true }), "semaphore", [
      ["busy with room left", "violation", "A acquire 0-1 ok", "B acquire 2-3 no busy"],
    ]);
  });
});

describe("read-write", () => {
  judged(readWrite(), "read-write-lock", [
    [
      "readers together",
      "ok",
      "A acquire 0-1 ok mode=read",
      "B acquire 2-3 ok mode=read",
      "A release 4-5 ok mode=read",
      "B release 6-7 ok mode=read",
      "C acquire 8-9 ok mode=write",
    ],
    ["a writer beside a reader", "violation", "A acquire 0-1 ok mode=read", "B acquire 2-3 ok mode=write"],
    ["a reader beside a writer", "violation", "A acquire 0-1 ok mode=write", "B acquire 2-3 ok mode=read"],
    [
      "a reader's release that drops another reader",
      "violation",
      "A acquire 0-1 ok mode=read",
      "B acquire 2-3 ok mode=read",
      "A release 4-5 ok mode=read",
      "C acquire 6-7 ok mode=write",
    ],
    ["a release in the other mode", "violation", "A acquire 0-1 ok mode=read", "A release 2-3 ok mode=write"],
    ["writing while reading", "violation", "A acquire 0-1 ok mode=read", "A acquire 2-3 ok mode=write"],
    ["writing while reading is refused", "ok", "A acquire 0-1 ok mode=read", "A acquire 2-3 no busy mode=write"],
    [
      "a downgrade lets readers in",
      "ok",
      "A acquire 0-1 ok mode=write",
      "A downgrade 2-3 ok",
      "B acquire 4-5 ok mode=read",
      "A release 6-7 ok mode=read",
    ],
    [
      "a downgrade lets no writer in",
      "violation",
      "A acquire 0-1 ok mode=write",
      "A downgrade 2-3 ok",
      "B acquire 4-5 ok mode=write",
    ],
    ["an upgrade alone", "ok", "A acquire 0-1 ok mode=read", "A upgrade 2-3 ok", "A release 4-5 ok mode=write"],
    [
      "an upgrade beside a reader",
      "violation",
      "A acquire 0-1 ok mode=read",
      "B acquire 2-3 ok mode=read",
      "A upgrade 4-5 ok",
    ],
    [
      "a refused upgrade beside a reader",
      "ok",
      "A acquire 0-1 ok mode=read",
      "B acquire 2-3 ok mode=read",
      "A upgrade 4-5 no busy",
    ],
    ["a refused upgrade alone", "violation", "A acquire 0-1 ok mode=read", "A upgrade 4-5 no busy"],
    [
      "a writer after readers that died",
      "ok",
      "A acquire 0-1 ok mode=read",
      "B acquire 2-3 ok mode=read",
      "C acquire 1000-1001 ok mode=write",
    ],
    [
      "a writer after one of two readers died",
      "violation",
      "A acquire 0-1 ok mode=read",
      "B acquire 500-501 ok mode=read",
      "C acquire 1000-1001 ok mode=write",
    ],
    ["busy while it is free", "violation", "A acquire 0-1 no busy mode=read"],
  ]);

  describe("that a writer may read", () => {
    judged(readWrite({ readsWhileWriting: true }), "read-write-lock", [
      [
        "reading while writing, then reading on",
        "ok",
        "A acquire 0-1 ok mode=write",
        "A acquire 2-3 ok mode=read",
        "A release 4-5 ok mode=write",
        "B acquire 6-7 ok mode=read",
      ],
      [
        "another that writes after the writer only reads",
        "violation",
        "A acquire 0-1 ok mode=write",
        "A acquire 2-3 ok mode=read",
        "A release 4-5 ok mode=write",
        "B acquire 6-7 ok mode=write",
      ],
    ]);
  });
});

describe("latch", () => {
  judged(latch(), "count-down-latch", [
    [
      "down to zero",
      "ok",
      "A set-count 0-1 ok count=2",
      "B count-down 2-3 ok result=1",
      "C await 2-9 ok",
      "B count-down 4-5 ok result=0",
    ],
    ["going on before zero", "violation", "A set-count 0-1 ok count=2", "B count-down 2-3 ok", "C await 4-5 ok"],
    ["giving up at zero", "violation", "A set-count 0-1 ok count=1", "B count-down 2-3 ok", "C await 4-5 no gave-up"],
    ["giving up before zero", "ok", "A set-count 0-1 ok count=1", "C await 2-5 no gave-up", "B count-down 6-7 ok"],
    ["a second count set before zero", "violation", "A set-count 0-1 ok count=2", "B set-count 2-3 ok count=5"],
    ["a second count refused before zero", "ok", "A set-count 0-1 ok count=2", "B set-count 2-3 no"],
    ["a count-down at zero", "violation", "A count-down 0-1 ok"],
    ["a count-down refused at zero", "ok", "A count-down 0-1 no"],
    [
      "a caller that counts once",
      "ok",
      "A set-count 0-1 ok count=2",
      "B count-down 2-3 ok caller=b",
      "B count-down 4-5 ok caller=b",
      "C count 6-7 ok result=1",
    ],
    [
      "a caller that counts twice",
      "violation",
      "A set-count 0-1 ok count=2",
      "B count-down 2-3 ok caller=b",
      "B count-down 4-5 ok caller=b",
      "C count 6-7 ok result=0",
    ],
    [
      "two that both reach zero",
      "violation",
      "A set-count 0-1 ok count=2",
      "B count-down 2-9 ok result=0",
      "C count-down 2-9 ok result=0",
    ],
    [
      "a count-down of unknown outcome",
      "ok",
      "A set-count 0-1 ok count=1",
      "B count-down 2- info",
      "C count 3-4 ok result=1",
      "D await 5-6 ok",
    ],
    ["a latch that was never set is open", "ok", "A await 0-1 ok"],
  ]);
});

describe("fifo", () => {
  /** Cases of operations, and of what else was seen: `queued 1@5`, `missed 1@5`, `killed B@5`. */
  const cases: readonly Case[] = [
    [
      "in the order of the queue",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-20 ok",
      "C acquire 5-30 ok",
      "A release 10-11 ok",
      "B release 21-22 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "against the order of the queue",
      "violation",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "in either order while both enqueue at once",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "C acquire 3-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 1@6",
      "queued 2@5",
    ],
    [
      "past somebody who never heard that it queues",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 2@6",
    ],
    [
      "past somebody by a caller that does not queue",
      "violation",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "A release 10-11 ok",
      "C acquire 12-13 ok",
      "C release 21-22 ok",
      "queued 1@3",
    ],
    [
      "past somebody who gave up",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-9 no gave-up",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "past somebody who is giving up",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-40 no gave-up",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "a grant that crossed a leaving",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-40 no gave-up",
      "A release 10-11 ok",
      "C acquire 12-13 no busy",
      "C acquire 41-42 ok",
      "queued 1@3",
    ],
    [
      "past somebody who was killed",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2- info",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "queued 1@3",
      "queued 2@6",
      "killed B@8",
    ],
    [
      "past somebody who is killed later",
      "violation",
      "A acquire 0-1 ok",
      "B acquire 2-90 ok",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 1@3",
      "queued 2@6",
      "killed B@25",
    ],
    [
      "past somebody who was taken for dead",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 1@3",
      "queued 2@6",
      "missed 1@8",
    ],
    ["two at once", "violation", ...TAKEN],
  ];
  it.each(cases.map(([property, verdict, ...lines]) => ({ property, verdict, lines })))(
    "$property: $verdict",
    ({ verdict, lines }) => {
      const isSeen = (line: string): boolean => /^(queued|missed|killed) /.test(line);
      const seen = lines.filter(isSeen).map((line): HistoryRecord => {
        const [what, who = "", at] = line.split(/[ @]/);
        const atMs = Number(at);
        if (what === "killed")
          return { type: "fault", id: "J03", beganMs: atMs, endedMs: Infinity, target: who, proof: "exit" };
        return { type: what === "queued" ? "enqueued" : "missed", atMs, lockName: "orders", operationId: Number(who) };
      });
      const history = historyOf([...operations(lines.filter((line) => !isSeen(line))), ...seen]);
      expect(check(fifo(), timed(fifoOperations(history, "orders"))).verdict).toBe(verdict);
    },
  );
});

it("a verb that a model does not know is an error, not a verdict", () => {
  expect(() => check(mutex(), timed(operations(["A downgrade 0-1 ok"])))).toThrow('"downgrade"');
});
