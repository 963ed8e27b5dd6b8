/** The judge of a simulated run uses tokens and grants from before the server forgot them. */
import { expect, test } from "vitest";
import type { History } from "../src/history/index.js";
import type { Circumstances } from "../src/simulation/finding.js";
import { linearizability } from "../src/simulation/linearizability.js";
import { operations } from "./histories.js";

/** Two grants one after the other, the second with the lower token. */
const FALLING = [
  "A acquire 0-10 ok lease=100 token=7",
  "A release 20-30 ok",
  "B acquire 40-50 ok lease=100 token=5",
  "B release 60-70 ok",
];

const NEVER = Number.POSITIVE_INFINITY;

function verdict(tokensUntilMs: number, lines = FALLING, exclusionUntilMs = NEVER): readonly string[] {
  const history = { operations: operations(lines), observations: [] } as unknown as History;
  const circumstances = { kind: "mutex", slowClock: [], tokensUntilMs, exclusionUntilMs } as unknown as Circumstances;
  return linearizability(history, circumstances, 10_000).violations.map(({ property }) => property);
}

test("tokens are judged if the server forgot none", () => {
  expect(verdict(Number.POSITIVE_INFINITY)).toEqual(["S1"]);
});

test("tokens are judged if the server forgot them only after the last grant", () => {
  expect(verdict(51)).toEqual(["S1"]);
});

test("tokens are not judged if the server forgot them before the last grant", () => {
  expect(verdict(45)).toEqual([]);
});

test("a claim excludes others from its grant on, even if the served caller called later", () => {
  const joined = (grantedMs: number): string[] => [
    "A acquire 0-1 ok lease=100 token=5",
    "A release 2-3 ok",
    "B acquire 5-6 no busy",
    `C acquire 8-20 ok lease=100 token=7 delivered=${grantedMs}`,
  ];
  expect(verdict(Number.POSITIVE_INFINITY, joined(4))).toEqual([]);
  expect(verdict(Number.POSITIVE_INFINITY, joined(9))).toEqual(["S1"]);
});

test("a grant that the server made after the end of the history explains no refusal before it", () => {
  const refused = (grantedMs: number): string[] => [
    `A acquire 0- info lease=100 delivered=${grantedMs}`,
    "B acquire 10-20 no busy",
  ];
  expect(verdict(NEVER, refused(5), 50)).toEqual([]);
  expect(verdict(NEVER, refused(60), 50)).toEqual(["S1"]);
});
