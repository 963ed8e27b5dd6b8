/** The search of failovers: what is near enough to be searched in a test. `failover-main.js` searches all of it. */
import { expect, test } from "vitest";
import { FAILOVER_CASES, searchFailoverWithout } from "../src/search/failover-rules.js";

const NEAR: Readonly<Record<string, RegExp>> = {
  "ask-first": /^S2/,
  "fresh-owner": /^F2/,
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
