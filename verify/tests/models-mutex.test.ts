import { describe, expect, it } from "vitest";

import { check } from "../src/checker/index.js";
import { EXPIRY, fenced, mutex, ownerAware, reentrant, reentrantFenced, timed } from "../src/models/index.js";
import { operations } from "./histories.js";
import { judged, TAKEN } from "./model-cases.js";

describe("mutex", () => {
  judged(mutex(), "mutex", [
    ["one after the other", "ok", "A acquire 0-1 ok", "A release 2-3 ok", "B acquire 4-5 ok"],
    ["two at the same time", "violation", ...TAKEN],
    ["a release by any client", "ok", "A acquire 0-1 ok", "B release 2-3 ok", "C acquire 4-5 ok"],
    ["a release of a free lock", "violation", "A release 0-1 ok"],
    ["busy while it is free", "violation", "A acquire 0-1 no busy"],
  ]);
});

describe("owner-aware", () => {
  judged(ownerAware(), "mutex", [
    ["a release that overlaps the next acquire", "ok", "A acquire 0-1 ok", "A release 2-9 ok", "B acquire 3-4 ok"],
    ["two at the same time", "violation", ...TAKEN],
    ["an owner that acquires twice", "violation", "A acquire 0-1 ok", "A acquire 2-3 ok"],
    ["a release by another client", "violation", "A acquire 0-1 ok", "B release 2-3 ok"],
    ["a refused release by another client", "ok", "A acquire 0-1 ok", "B release 2-3 no not-owner", "A release 4-5 ok"],
    ["a refused release by its owner", "violation", "A acquire 0-1 ok", "A release 2-3 no not-owner"],
    ["a second release", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A release 4-5 ok"],
    ["an extend by another client", "violation", "A acquire 0-1 ok", "B extend 2-3 ok"],
    ["an extend after release", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A extend 4-5 ok"],
    ["a refused extend after release", "ok", "A acquire 0-1 ok", "A release 2-3 ok", "A extend 4-5 no not-owner"],
    ["requests that were not sent", "ok", "A acquire 0-1 no not-sent", "A release 2-3 no not-sent"],
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
    ["an extend that restarts it", "violation", "A acquire 0-1 ok", "A extend 500-501 ok", "B acquire 1400-1450 ok"],
    ["an acquire after the extended end", "ok", "A acquire 0-1 ok", "A extend 500-501 ok", "B acquire 1480-1490 ok"],
    ["an extend after the latest end", "violation", "A acquire 0-1 ok", "A extend 1012-1013 ok"],
    ["the owner's next acquire", "ok", "A acquire 0-1 ok", "A acquire 1100-1101 ok"],
    [
      "busy after a release that was refused because the lease had ended",
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
      ["an acquire of a lock that was granted after it", "violation", "A acquire 201-202 ok", "B acquire 300-301 ok"],
      ["a release by another client", "violation", "A acquire 0-1 ok", "B release 150-151 ok"],
    ]);
  });

  describe("in a window in which leases may stay", () => {
    const expiry = { ...EXPIRY, unbounded: unbounded.map((window) => ({ ...window, expiry: "late" as const })) };
    judged(ownerAware(expiry), "mutex", [
      ["busy long after", "ok", "A acquire 0-1 ok", "B acquire 9000-9001 no busy"],
      [
        "busy with a lock that was granted after it",
        "violation",
        "A acquire 201-202 ok",
        "B acquire 9000-9001 no busy",
      ],
      ["two at the same time", "violation", ...TAKEN],
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
      "an acquire that cannot explain two others",
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
      "a release by another client, which cannot free it",
      "violation",
      "A acquire 0-1 ok",
      "B release 2- info",
      "C acquire 3-4 ok",
    ],
    ["an extend that may have happened", "ok", "A acquire 0-1 ok", "A extend 900- info", "B acquire 1500-1501 no busy"],
    [
      "a grant made just as its waiter left",
      "ok",
      "A acquire 0-9 no gave-up",
      "B acquire 3-4 no busy",
      "C acquire 10-11 ok",
    ],
    [
      "a grant made just as its waiter left, which stays past its lease",
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
      "another client after one of two releases",
      "violation",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok",
      "A release 4-5 ok",
      "B acquire 6-7 ok",
    ],
    ["one hold more than allowed", "violation", "A acquire 0-1 ok", "A acquire 2-3 ok", "A acquire 4-5 ok"],
    ["one hold more than allowed is refused", "ok", "A acquire 0-1 ok", "A acquire 2-3 ok", "A acquire 4-5 no busy"],
    ["a hold that is allowed is refused", "violation", "A acquire 0-1 ok", "A acquire 2-3 no busy"],
    ["one release more than holds", "violation", "A acquire 0-1 ok", "A release 2-3 ok", "A release 4-5 ok"],
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
      "a token that becomes known later",
      "ok",
      "A acquire 0-1 ok",
      "A acquire 2-3 ok token=5",
      "A acquire 4-5 ok token=5",
    ],
    [
      "a token that became known and changes",
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

it("a verb that a model does not know is an error, not a verdict", () => {
  expect(() => check(mutex(), timed(operations(["A downgrade 0-1 ok"])))).toThrow('"downgrade"');
});

it("a release that is called when its acquire returns is ordered before the next grant without a long search", () => {
  // B waited as long as A, and each of its turns extends its lease until after all turns are over.
  const turns = Array.from({ length: 30 }, (_, turn) => [
    `B${turn} acquire ${turn === 0 ? 0 : 100}-100 ok lease=1000 token=${turn + 2}`,
    `B${turn} extend 100-130 ok lease=1000`,
    `B${turn} release 100-100 ok`,
  ]).flat();
  const lines = ["A acquire 0-90 ok lease=10 token=1", "A release 90-120 ok", ...turns];
  const { verdict, visited } = check(fenced(), timed(operations(lines)), { timeoutMs: 20_000 });
  expect(verdict).toBe("ok");
  expect(visited).toBeLessThan(10 * lines.length);
});
