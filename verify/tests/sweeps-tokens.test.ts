import { describe } from "vitest";

import { historyOf } from "../src/history/index.js";
import type { HistoryRecord } from "../src/history/records.js";
import {
  exactTokens,
  guardedTokens,
  risingTokens,
  steadyTokens,
  uniqueTokens,
  untornEffects,
} from "../src/sweeps/index.js";
import { effect, judged, sample } from "./sweep-cases.js";

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
      "one token for a further hold whose reply comes after the lease has ended",
      "ok",
      "A acquire 0-1 ok token=5 valid=9",
      "A acquire 8-10 ok token=5",
    ],
    [
      "one token for two separate holds",
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
      "against the order of returns of overlapping calls",
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
    ["with an unknown outcome", "empty", "A acquire 0-1 info token=9", "B acquire 2-3 ok token=5"],
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
    ["possibly changed by an upgrade without a reply", "empty", lease, "A upgrade 2-3 info", "A extend 4-5 ok token=7"],
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

describe("F5, the protected resource accepts no lower token", () => {
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
    ["an unacknowledged one is lost", "ok", effect(1, 0, 5, { isAcknowledged: false }), final()],
  ]);
});
