import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AcquireVote,
  type ConfirmAnswer,
  confirmed,
  decide,
  quorumOf,
  tally,
} from "../../src/redlock/decision.js";

const no: AcquireVote = { outcome: "refused" };
const open: AcquireVote = { outcome: "pending" };
const yes = (token: number): AcquireVote => ({ outcome: "granted", token });

const number = fc.integer({ min: 1, max: 4 });
const answer: fc.Arbitrary<AcquireVote> = fc.oneof(fc.constant(no), fc.constant(open), number.map(yes));
const answers = fc.array(answer, { minLength: 1, maxLength: 9 });

function numbers(of: readonly AcquireVote[]): number[] {
  return of.flatMap((each) => (each.outcome === "granted" ? [each.token] : []));
}

describe("a majority", () => {
  test.each([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
    [6, 4],
    [7, 4],
    [8, 5],
    [9, 5],
  ])("of %i servers is %i, and any two of them share a server", (servers, quorum) => {
    expect(quorumOf(servers)).toBe(quorum);
    expect(2 * quorum).toBeGreaterThan(servers);
    expect(2 * (quorum - 1)).toBeLessThanOrEqual(servers);
  });

  test("is awaited exactly while it is still possible", () => {
    for (let servers = 1; servers <= 9; servers += 1)
      for (let granted = 0; granted <= servers; granted += 1)
        for (let pending = 0; granted + pending <= servers; pending += 1) {
          const outcome = tally(granted, pending, servers);
          if (outcome === "granted") expect(granted * 2).toBeGreaterThan(servers);
          if (outcome === "wait")
            expect([granted * 2 > servers, (granted + pending) * 2 > servers]).toEqual([false, true]);
          if (outcome === "refused") expect((granted + pending) * 2).toBeLessThanOrEqual(servers);
        }
  });
});

describe("an attempt", () => {
  test.each<[string, AcquireVote[], object]>([
    ["is granted when a majority replies with one number", [yes(7), yes(7), open], { outcome: "granted", token: 7 }],
    ["is granted when a majority replies with the maximum", [yes(6), yes(7), yes(7)], { outcome: "granted", token: 7 }],
    [
      "is to be confirmed on servers below the maximum",
      [yes(6), yes(7), no],
      { outcome: "confirm", token: 7, standing: [1], behind: [{ server: 0, reported: 6 }] },
    ],
    [
      "is to be confirmed when a majority agrees on less than the maximum",
      [yes(6), yes(6), yes(7)],
      {
        outcome: "confirm",
        token: 7,
        standing: [2],
        behind: [
          { server: 0, reported: 6 },
          { server: 1, reported: 6 },
        ],
      },
    ],
    ["waits while a majority is possible", [yes(6), no, open], { outcome: "wait" }],
    ["is refused when a majority is not possible", [yes(6), no, no], { outcome: "refused" }],
    ["is refused by half of an even number", [yes(6), yes(6), no, no], { outcome: "refused" }],
    ["does not count a number that may have been rounded", [yes(2 ** 53), yes(7), no], { outcome: "refused" }],
  ])("%s", (_, given, decision) => {
    expect(decide(given)).toEqual(decision);
  });

  test("uses the largest granted number as its token, whatever the order of replies", () => {
    fc.assert(
      fc.property(answers, (given) => {
        const decision = decide(given);
        const turned = decide(given.toReversed());
        expect(turned.outcome).toBe(decision.outcome);
        if (decision.outcome !== "granted" && decision.outcome !== "confirm") return;
        expect(decision.token).toBe(Math.max(...numbers(given)));
        expect(numbers(given).length).toBeGreaterThanOrEqual(quorumOf(given.length));
      }),
    );
  });

  test("granted without confirmation has its token on a majority", () => {
    fc.assert(
      fc.property(answers, (given) => {
        const decision = decide(given);
        const standing = numbers(given).filter((each) => each === Math.max(...numbers(given)));
        if (decision.outcome === "granted") expect(standing.length).toBeGreaterThanOrEqual(quorumOf(given.length));
        if (decision.outcome === "confirm") expect(standing.length).toBeLessThan(quorumOf(given.length));
      }),
    );
  });
});

describe("a confirmation", () => {
  const answered = fc.constantFrom<ConfirmAnswer>("pending", "confirmed", "refused");

  test("counts the servers at the token and those raised to it, but no later grants", () => {
    fc.assert(
      fc.property(answers, fc.array(answered, { minLength: 9, maxLength: 9 }), (given, all) => {
        const decision = decide(given);
        fc.pre(decision.outcome === "confirm");
        const acks = all.slice(0, given.length);
        const raised = decision.behind.filter(({ server }) => acks[server] === "confirmed").length;
        const isMajority = decision.standing.length + raised >= quorumOf(given.length);
        expect(confirmed(decision, acks) === "granted").toBe(isMajority);
        const others = acks.map((ack, server) =>
          decision.behind.some((behind) => behind.server === server) ? ack : "confirmed",
        );
        expect(confirmed(decision, others)).toBe(confirmed(decision, acks));
      }),
    );
  });

  test("is awaited exactly while it can still succeed", () => {
    const decision = decide([yes(5), yes(6), yes(7), no, no]);
    if (decision.outcome !== "confirm") throw new Error("two are behind");
    expect(confirmed(decision, ["pending", "pending", "pending", "pending", "pending"])).toBe("wait");
    expect(confirmed(decision, ["confirmed", "pending", "pending", "pending", "pending"])).toBe("wait");
    expect(confirmed(decision, ["confirmed", "confirmed", "pending", "pending", "pending"])).toBe("granted");
    expect(confirmed(decision, ["refused", "pending", "confirmed", "confirmed", "confirmed"])).toBe("refused");
  });
});
