/** The judge of failovers, on handwritten records. */
import { expect, test } from "vitest";
import { judge } from "../src/failovers/judge.js";
import { optionsOf } from "../src/failovers/options.js";
import type { Failover } from "../src/failovers/round.js";
import type { HistoryRecord, Operation } from "../src/history/index.js";

const LEASE_MS = 5_000;
const NAME = "one";

function grant(id: number, returnMs: number, validUntilMs: number, token = id): Operation {
  const common = { type: "operation", process: `w${id}`, incarnation: 1, lockName: NAME, kind: "mutex" } as const;
  const facts = { id, leaseId: id, owner: `o${id}`, token, outcome: "ok", callMs: returnMs - 1, returnMs } as const;
  return { ...common, ...facts, verb: "acquire", args: { leaseMs: LEASE_MS }, validUntilMs };
}

function release(id: number, of: Operation, atMs: number): Operation {
  return { ...of, id, verb: "release", args: {}, callMs: atMs, returnMs: atMs + 1, validUntilMs: null };
}

/** The master dies at 1000, and another takes over at 2000 that knows `holder`. */
function failover(holder: string | null, rivalAtMs?: number): Failover {
  const times = { cutAtMs: 500, killedAtMs: 1_000, promotedAtMs: 2_000, restartedAtMs: 9_000, rivalAtMs };
  return { names: [NAME], ...times, lostBytes: 1, holders: new Map([[NAME, holder]]), stuck: [] };
}

function judged(records: readonly HistoryRecord[], failovers: readonly Failover[], losses = new Map<number, string>()) {
  const crew = { records, losses, errors: [], grantedAtMs: () => 0, stop: async () => {} };
  return judge(crew, failovers, LEASE_MS, true);
}

test("two leases that are valid at the same time are a double grant, and the reason names two masters", () => {
  const records = [grant(1, 900, 5_900), grant(2, 2_100, 7_100)];
  expect(judged(records, [failover(null)])).toMatchObject({ doubleGrants: 1, doubleGrantsOfTwoMasters: 0 });
  expect(judged(records, [failover(null, 2_200)])).toMatchObject({ doubleGrants: 0, doubleGrantsOfTwoMasters: 1 });
  expect(judged(records, [failover(null, 8_000)]), "a rival that came later explains nothing").toMatchObject({
    doubleGrants: 1,
  });
});

test("a lease that the successor does not know is lost; it is restored if the successor later reports its release", () => {
  const lease = grant(1, 900, 5_900);
  const next = { ...grant(3, 7_500, 12_500), callMs: 950 };
  const kept = judged([lease, release(2, lease, 4_000), next], [failover(null)]);
  expect(kept).toMatchObject({ heldAtDeath: 1, lostGrants: 1, reclaimed: 1, refused: 0, doubleGrants: 0 });
  expect(kept.longestResumeMs, "from the end of the quiet time").toBeCloseTo(500);
  expect(judged([lease, release(2, lease, 4_000)], [failover("o1")])).toMatchObject({ lostGrants: 0, reclaimed: 0 });
  expect(judged([lease], [failover(null)], new Map([[1, "server-lost"]]))).toMatchObject({ refused: 1, reclaimed: 0 });
  expect(judged([lease], [failover("o1")], new Map([[1, "server-lost"]]))).toMatchObject({ lostThoughKnown: 1 });
  expect(judged([lease], [failover(null)], new Map([[1, "expired"]]))).toMatchObject({ tooLate: 1, refused: 0 });
});

test("a token that appears twice, or after a higher one, is counted", () => {
  const first = grant(1, 100, 5_100, 9);
  const records = [first, release(2, first, 200), grant(3, 300, 5_300, 8)];
  expect(judged(records, [failover(null)]).tokensThatFell).toBe(1);
});

test("wrong options are refused with their range", () => {
  expect(() => optionsOf(["--count", "0"])).toThrow(/--count must be a whole number from 1 to 1000; got 0/);
  expect(() => optionsOf(["--topology", "ring"])).toThrow(/--topology/);
  expect(optionsOf(["--topology", "cluster", "--grace", "off"])).toMatchObject({
    topologies: ["cluster"],
    grace: "off",
  });
});
