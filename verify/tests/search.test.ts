/**
 * The search of small worlds: it finds nothing with all rules, and something without any one of them.
 *
 * These are some of the worlds, and the rules whose absence is found early. The search command runs the others.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { howFar, ruleTable, statesIn, verdictsIn } from "../src/search/document.js";
import { explore } from "../src/search/explore.js";
import { searchWith, searchWithout, searchWorld } from "../src/search/judge.js";
import { mutexKind } from "../src/search/lock-kinds.js";
import { PlainWorld } from "../src/search/plain-world.js";
import { productionScripts } from "../src/search/production-scripts.js";
import { NEAR_STATES, statesFor } from "../src/search/reach.js";
import { changed, RULES } from "../src/search/rules.js";
import { Server } from "../src/search/server.js";
import { WORLDS } from "../src/search/worlds.js";

/** More than the states of any small world. */
const STATES = 100_000;
/** The maximum number of states for the search with the rule; the command searches more. */
const CONTROL_STATES = 300;
const LONG_MS = 120_000;
const NEAR = RULES.filter((rule) => statesFor(rule) === NEAR_STATES);

const read = (name: string): string => readFileSync(fileURLToPath(new URL(`../docs/${name}`, import.meta.url)), "utf8");

describe("with all rules", () => {
  const searched = WORLDS.filter(({ id }) => ["W2", "W4", "W8", "Q5"].includes(id));
  test.each(searched)("$id violates nothing: $what", { timeout: LONG_MS }, async (setting) => {
    const { verdict, violation, trace, states } = await searchWorld(setting, "small", STATES);
    expect({ verdict, violation, trace }).toEqual({ verdict: "holds", violation: undefined, trace: [] });
    expect(statesIn(read("search.md"), setting.id, setting.bounds.small.text), "in the document").toBe(String(states));
  });
});

/** Enough states for each kind of fault in a world to occur once. */
const BEGINNING = 400;

describe("the large bound", () => {
  test.each(WORLDS)("of $id violates nothing in its first states", { timeout: LONG_MS }, async (setting) => {
    const { verdict, violation, states } = await searchWorld(setting, "large", BEGINNING);
    expect({ verdict, violation }).toEqual({ verdict: "capped", violation: undefined });
    expect(states).toBeGreaterThan(BEGINNING);
  });

  test("distinguishes worlds that were searched completely", () => {
    const ran = [
      { id: "W1", verdict: "holds", states: 7 },
      { id: "W2", verdict: "capped", states: 9 },
      { id: "W3", verdict: "violated", states: 5 },
    ] as const;
    expect(howFar(ran)).toEqual({ ended: ["W1 (7 states)"], capped: ["W2 (9 states)"] });
  });
});

test("symmetric clients reduce the number of states, with the same verdict", { timeout: LONG_MS }, async () => {
  const server = new Server(await productionScripts());
  const smaller = { kind: mutexKind, enqueue: true, clients: [[1], [1]], budget: { crashes: 1, delays: 0 } } as const;
  const apart = await explore(new PlainWorld(smaller, server), STATES);
  const alike = await explore(new PlainWorld({ ...smaller, isSymmetric: true }, server), STATES);
  expect([apart.verdict, alike.verdict]).toEqual(["holds", "holds"]);
  expect(alike.states).toBeLessThan(apart.states);
  expect(alike.states).toBeGreaterThan(apart.states / 2 - 1);
});

describe("without a rule", () => {
  const found = new Map<string, Awaited<ReturnType<typeof searchWithout>>>();

  test.each(NEAR)("a violation is found, $id: $what", { timeout: LONG_MS }, async (rule) => {
    const explored = await searchWithout(rule, NEAR_STATES);
    found.set(rule.id, explored);
    expect(explored.verdict).toBe("violated");
    const control = await searchWith(rule, Math.min(explored.states, CONTROL_STATES));
    expect(control.violation, "with the rule").toBeUndefined();
  });

  test("every rule can be switched off", async () => {
    const texts = await productionScripts();
    for (const rule of RULES) {
      const isOff = rule.isOfClient || [...changed(texts, rule)].some(([name, text]) => texts.get(name) !== text);
      expect(isOff, rule.id).toBe(true);
    }
  });

  test("verify/docs/search-missed-rules.md shows what was found, and that a violation was found without each rule", () => {
    const judged = NEAR.flatMap((rule) => {
      const explored = found.get(rule.id);
      return explored === undefined ? [] : [{ rule, explored }];
    });
    expect(judged).toHaveLength(NEAR.length);
    const written = verdictsIn(read("search-missed-rules.md"));
    expect(written.map((line) => line.split(":")[0])).toEqual(RULES.map(({ id }) => id));
    expect(written.filter((line) => line.includes("not found"))).toEqual([]);
    const near = new Set(NEAR.map(({ id }) => id));
    expect(written.filter((line) => near.has(line.split(":")[0] ?? ""))).toEqual(verdictsIn(ruleTable(judged)));
  });
});
