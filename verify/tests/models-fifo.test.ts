import { describe, expect, it } from "vitest";

import { check } from "../src/checker/index.js";
import { historyOf } from "../src/history/index.js";
import type { HistoryRecord } from "../src/history/records.js";
import { fifo, fifoOperations, timed } from "../src/models/index.js";
import { operations } from "./histories.js";
import { type Case, TAKEN } from "./model-cases.js";

describe("fifo", () => {
  /** Cases with operations and other records: `queued 1@5`, `missed 1@5`, `killed B@5`. */
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
      "in either order while both enqueue at the same time",
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
      "past a waiter that never learned that it is queued",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "C release 21-22 ok",
      "queued 2@6",
    ],
    [
      "past a waiter, by a caller that does not queue",
      "violation",
      "A acquire 0-1 ok",
      "B acquire 2-30 ok",
      "A release 10-11 ok",
      "C acquire 12-13 ok",
      "C release 21-22 ok",
      "queued 1@3",
    ],
    [
      "past a waiter that gave up",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-9 no gave-up",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "past a waiter that is giving up",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-40 no gave-up",
      "C acquire 5-20 ok",
      "A release 10-11 ok",
      "queued 1@3",
      "queued 2@6",
    ],
    [
      "a grant made just as its waiter left",
      "ok",
      "A acquire 0-1 ok",
      "B acquire 2-40 no gave-up",
      "A release 10-11 ok",
      "C acquire 12-13 no busy",
      "C acquire 41-42 ok",
      "queued 1@3",
    ],
    [
      "past a waiter that was killed",
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
      "past a waiter that is killed later",
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
      "past a waiter that was considered dead",
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
    ["two at the same time", "violation", ...TAKEN],
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
