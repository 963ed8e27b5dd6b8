import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { check } from "../src/checker/index.js";
import { CAPS, widths } from "../src/history/index.js";
import type { Operation } from "../src/history/records.js";
import { fenced, ownerAware, permits, readWrite, timed } from "../src/models/index.js";
import { operations } from "./histories.js";

/**
 * A fair mutex that 15 clients continuously wait for, with some lost replies.
 *
 * A lost grant stops all clients for a lease, so all waits are longer than a lease, and the bounds of leases do not help.
 */
function crowded(rounds: number, lostEvery: number): Operation[] {
  const lines: string[] = [];
  let freeMs = 0;
  for (let round = 0; round < rounds; round += 1) {
    const owner = `client-${round}`;
    const calledMs = Math.max(0, freeMs - (round % 15) * 60);
    const grantMs = freeMs + 1;
    const isLost = round % lostEvery === lostEvery - 1;
    const isLostGrant = isLost && round % 2 === 0;
    lines.push(`${owner} acquire ${calledMs}-${grantMs + 3} ${isLostGrant ? "info" : `ok token=${100 + round}`}`);
    if (!isLostGrant) lines.push(`${owner} release ${grantMs + 4}-${grantMs + 9} ${isLost ? "info" : "ok"}`);
    freeMs = isLostGrant ? grantMs + 1011 : grantMs + 6;
  }
  return operations(lines);
}

describe("a lock name with as many simultaneous operations as the caps allow", () => {
  const history = crowded(400, 21);

  it("has that width", () => {
    const [width] = widths(history);
    expect(width?.openInfo).toBeGreaterThan(CAPS.openInfo - 3);
    expect(width?.openInfo).toBeLessThanOrEqual(CAPS.openInfo);
  });

  it.each([ownerAware(), fenced()])("is decided by $name", (model) => {
    const { verdict, visited } = check(model, timed(history));
    expect(verdict).toBe("ok");
    expect(visited).toBeLessThan(history.length * 100);
  });
});

describe("recorded ends of leases save work and change no verdict", () => {
  const instant = fc.integer({ min: 0, max: 40 });
  const drawn = fc.array(
    fc.record({
      owner: fc.constantFrom("A", "B", "C"),
      verb: fc.constantFrom("acquire", "release", "extend", "downgrade", "upgrade"),
      mode: fc.constantFrom("read", "write"),
      permits: fc.integer({ min: 1, max: 2 }),
      callMs: instant,
      lengthMs: fc.integer({ min: 0, max: 15 }),
      outcome: fc.constantFrom("ok", "ok", "ok", "no not-owner", "info"),
    }),
    { maxLength: 6 },
  );

  it.each([
    { model: ownerAware(), only: /acquire|release|extend/ },
    { model: permits({ limit: 2 }), only: /acquire|release|extend/ },
    { model: readWrite(), only: /./ },
  ])("$model.name", ({ model, only }) => {
    const seen = { ok: 0, violation: 0, unknown: 0 };
    fc.assert(
      fc.property(drawn, (records) => {
        const lines = records
          .filter(({ verb }) => only.test(verb))
          .map(({ owner, verb, mode, permits: wanted, callMs, lengthMs, outcome }) => {
            const came = verb === "acquire" && outcome.startsWith("no") ? "no gave-up" : outcome;
            return `${owner} ${verb} ${callMs}-${callMs + lengthMs} ${came} lease=10 mode=${mode} permits=${wanted}`;
          });
        const judged = timed(operations(lines));
        const plain = judged.map(({ value, ...span }) => ({ ...span, value: { ...value, isKept: false } }));
        const { verdict } = check<never, never>(model as never, judged as never);
        seen[verdict] += 1;
        expect(check<never, never>(model as never, plain as never).verdict).toBe(verdict);
      }),
      { numRuns: 1500, seed: 7 },
    );
    expect(Math.min(seen.ok, seen.violation)).toBeGreaterThan(50);
  });
});
