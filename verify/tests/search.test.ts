/** The search of small worlds: it finds nothing with all rules, and something without any one of them. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ruleTable, verdictsIn } from "../src/search/document.js";
import { explore } from "../src/search/explore.js";
import { searchWith, searchWithout, searchWorld } from "../src/search/judge.js";
import { PlainWorld } from "../src/search/plain-world.js";
import { productionScripts } from "../src/search/production-scripts.js";
import { RULES } from "../src/search/rules.js";
import { Server } from "../src/search/server.js";
import { WORLDS } from "../src/search/worlds.js";

/** More than any small bound has. */
const STATES = 100_000;
/** How far the same world is searched with the rule; the command line goes as far as it went without. */
const CONTROL_STATES = 2_000;
const LONG_MS = 120_000;

describe("with all rules", () => {
  test.each(WORLDS)("$id breaks nothing: $what", { timeout: LONG_MS }, async (setting) => {
    const { verdict, violation, trace } = await searchWorld(setting, "small", STATES);
    expect({ verdict, violation, trace }).toEqual({ verdict: "holds", violation: undefined, trace: [] });
  });
});

test("alike clients that change places make fewer states, and the same verdict", { timeout: LONG_MS }, async () => {
  const setting = WORLDS.find(({ id }) => id === "W2")?.bounds.small.setting;
  if (setting === undefined) throw new Error("there is no W2");
  const server = new Server(await productionScripts());
  const apart = await explore(new PlainWorld(setting, server), STATES);
  const alike = await explore(new PlainWorld({ ...setting, isSymmetric: true }, server), STATES);
  expect([apart.verdict, alike.verdict]).toEqual(["holds", "holds"]);
  expect(alike.states).toBeLessThan(apart.states);
  expect(alike.states).toBeGreaterThan(apart.states / 2 - 1);
});

describe("without a rule", () => {
  const found = new Map<string, Awaited<ReturnType<typeof searchWithout>>>();

  test.each(RULES)("$id is missed: $what", { timeout: LONG_MS }, async (rule) => {
    const explored = await searchWithout(rule);
    found.set(rule.id, explored);
    expect(explored.verdict).toBe("violated");
    const control = await searchWith(rule, Math.min(explored.states, CONTROL_STATES));
    expect(control.violation, "with the rule").toBeUndefined();
  });

  test("docs/verification.md says so", () => {
    const document = readFileSync(fileURLToPath(new URL("../../docs/verification.md", import.meta.url)), "utf8");
    const judged = RULES.flatMap((rule) => {
      const explored = found.get(rule.id);
      return explored === undefined ? [] : [{ rule, explored }];
    });
    expect(judged).toHaveLength(RULES.length);
    expect(verdictsIn(document)).toEqual(verdictsIn(ruleTable(judged)));
  });
});
