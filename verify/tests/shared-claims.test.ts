/** The judge of claims that callers share, with handwritten leases. */
import { beforeEach, describe, expect, test } from "vitest";
import { crowdsOf, FIRST_CROWD_ID } from "../src/simulation/crowds.js";
import type { Call } from "../src/simulation/network.js";
import { planOf } from "../src/simulation/plan.js";
import type { SimulatedProcess } from "../src/simulation/process.js";
import { runPlan } from "../src/simulation/run.js";
import { BATCH_MS, SharedClaims } from "../src/simulation/shared-claims.js";

/** The number of reserved tokens, as in the owner id. */
const BLOCK = 32;
const OWNER = "p0-0-id/1/1000/32/c1";
const TOKEN = 1_000;

let nowMs: number;
let found: string[];
let claims: SharedClaims;
const process = { name: "p0", incarnation: 0, monotonicMs: () => nowMs } as SimulatedProcess;

beforeEach(() => {
  nowMs = 50;
  found = [];
  claims = new SharedClaims(
    (property) => found.push(property),
    () => {},
  );
  const call = { script: { name: "mutex/acquire" }, keys: ["hf:mutex:{lock 0}"], args: [OWNER] } as unknown as Call;
  claims.sent(process, call, 0);
});

/** The next lease of the claim begins. */
function begin(lease: { token: number; callMs?: number; validForMs?: number; owner?: string }): number {
  const owner = lease.owner ?? OWNER;
  return claims.began({ process, lockName: "lock 0", callMs: 0, grantedMs: 40, validForMs: 900, ...lease, owner });
}

describe("leases of one claim", () => {
  test("are distinct, and may follow each other until the batch is over", () => {
    for (let nth = 0; nth < BLOCK; nth += 1) expect(begin({ token: TOKEN + nth })).toBe(nth);
    expect(found).toEqual([]);
    expect(begin({ owner: "p0-0-id/2/1000/32/s1", token: 1 })).toBe(0);
  });

  test.each([
    ["F1", "the same token again", { token: TOKEN }, 0],
    ["F1", "a token that is not the next", { token: TOKEN + 2 }, 0],
    ["F2", "a caller that called after the grant was made", { token: TOKEN + 1, callMs: 41 }, 0],
    ["S2", "a claim that has ended", { token: TOKEN + 1, validForMs: 0 }, 0],
    ["L6", "a batch that has taken too long", { token: TOKEN + 1 }, BATCH_MS + 1],
  ] as const)("violate %s by %s", (property, _, lease, laterMs) => {
    begin({ token: TOKEN });
    nowMs += laterMs;
    begin(lease);
    expect(found).toEqual([property]);
  });

  test("violate L6 if there are more than the grant allows", () => {
    for (let nth = 0; nth <= BLOCK; nth += 1) begin({ token: TOKEN + nth });
    expect(found).toEqual(["L6"]);
  });
});

describe("a release without a reply", () => {
  test("needs the next lease of its claim within the same event", () => {
    begin({ token: TOKEN });
    expect(claims.handedOn(OWNER, 0, "the first")).toBe(true);
    begin({ token: TOKEN + 1 });
    claims.afterEvent();
    expect(found).toEqual([]);
    expect(claims.handedOn(OWNER, 1, "the second")).toBe(true);
    claims.afterEvent();
    expect(found).toEqual(["S5"]);
    expect(claims.handedOn("other", 0, "shares nothing")).toBe(false);
  });
});

test("crowds change nothing else in a plan, and pass leases on", async () => {
  let handedOn = 0;
  let crowds = 0;
  for (let seed = 1; seed <= 12; seed += 1) {
    const plan = planOf(seed, "mutex", "none");
    const crowd = plan.sessions.filter((session) => session.crowd !== undefined);
    expect(new Set(crowd.map(({ id }) => id))).toEqual(
      new Set(crowdsOf(seed, "mutex", plan.processCount, 2).map(({ id }) => id)),
    );
    expect(plan.sessions.filter(({ id }) => id < FIRST_CROWD_ID)).toEqual(
      plan.sessions.filter(({ crowd: of }) => of === undefined),
    );
    const { violations, checked } = await runPlan(plan);
    expect(violations).toEqual([]);
    handedOn += checked.get("leases handed on") ?? 0;
    crowds += crowd.length > 0 ? 1 : 0;
  }
  expect(crowds).toBeGreaterThan(0);
  expect(handedOn).toBeGreaterThan(0);
});
