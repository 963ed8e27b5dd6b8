import { describe } from "vitest";

import { latch, permits, readWrite } from "../src/models/index.js";
import { judged } from "./model-cases.js";

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
    ["more released than were held", "violation", "A acquire 0-1 ok permits=2", "A release 2-3 ok permits=3"],
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
        "reading while writing, then continuing to read",
        "ok",
        "A acquire 0-1 ok mode=write",
        "A acquire 2-3 ok mode=read",
        "A release 4-5 ok mode=write",
        "B acquire 6-7 ok mode=read",
      ],
      [
        "another client that writes while the former writer reads",
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
    ["continuing before zero", "violation", "A set-count 0-1 ok count=2", "B count-down 2-3 ok", "C await 4-5 ok"],
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
      "two callers that both reach zero",
      "violation",
      "A set-count 0-1 ok count=2",
      "B count-down 2-9 ok result=0",
      "C count-down 2-9 ok result=0",
    ],
    [
      "a count-down with an unknown outcome",
      "ok",
      "A set-count 0-1 ok count=1",
      "B count-down 2- info",
      "C count 3-4 ok result=1",
      "D await 5-6 ok",
    ],
    ["a latch that was never set is open", "ok", "A await 0-1 ok"],
  ]);
});
