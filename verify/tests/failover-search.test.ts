/** The searches of failovers that are short enough for a test. `failover-main.js` runs all of them. */
import { expect, test } from "vitest";
import { CLUSTER_CASES, CLUSTER_WORLDS, searchCluster, searchClusterWithout } from "../src/search/cluster-rules.js";
import { FAILOVER_CASES, searchFailoverWithout } from "../src/search/failover-rules.js";

const NEAR: Readonly<Record<string, RegExp>> = {
  "ask-first": /^S2/,
  "fresh-owner": /^F2/,
  "compare-run-in-script": /^S2/,
};

test.each(Object.entries(NEAR))(
  "without %s a failover breaks a promise",
  async (id, broken) => {
    const one = FAILOVER_CASES.find((each) => each.id === id);
    expect(one).toBeDefined();
    if (one === undefined) return;
    const { violation, trace } = await searchFailoverWithout(one, 20_000);
    expect(violation).toMatch(broken);
    expect(trace.length).toBeGreaterThan(5);
  },
  120_000,
);

test.each(CLUSTER_CASES.map((one) => [one.id, one] as const))(
  "in a cluster, without %s a failover breaks a promise",
  async (_, one) => {
    const { violation, trace } = await searchClusterWithout(one, 60_000);
    expect(violation).toBe("S2: two holders at once");
    expect(trace.length).toBeGreaterThan(5);
  },
  120_000,
);

test("in a cluster, with all rules, nothing is violated while the slot stays", async () => {
  const [first] = CLUSTER_WORLDS;
  expect(first?.id).toBe("K1");
  const { verdict, violation } = await searchCluster(first?.setting ?? never(), 200_000);
  expect([verdict, violation]).toEqual(["holds", undefined]);
}, 120_000);

function never(): never {
  throw new Error("there is no such world");
}
